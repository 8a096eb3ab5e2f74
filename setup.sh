#!/bin/sh
# Installs what is missing, builds, and predicts a first step. Run again at any time: it does only what is left to do.
#   ./setup.sh         build, and run `k25sim predict scenarios/tp8_bs1.yaml`
#   ./setup.sh --deps  only install the packages
#   ./setup.sh --test  build, and run the whole test suite
set -eu
cd "$(dirname "$0")"

PACKAGES="gcc libc6-dev cmake ninja-build pkg-config libgsl-dev libyaml-dev libisal-dev libsqlite3-dev libjansson-dev libpopt-dev libmuparser-dev libcmocka-dev python3 mandoc"
TEST_PACKAGES="openmpi-bin libopenmpi-dev jupyter-nbconvert python3-ipykernel python3-matplotlib"

install_missing() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -z "$missing" ] && { echo "setup: all packages are installed"; return; }
    echo "setup: installing$missing"
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo"
    $as_root apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing
}

build() {
    echo "setup: building build/$1"
    cmake --preset "$1" >/dev/null
    cmake --build --preset "$1"
}

# shellcheck disable=SC2086
install_missing $PACKAGES
case "${1:-}" in
--deps) ;;
--test)
    # shellcheck disable=SC2086
    install_missing $TEST_PACKAGES
    build release
    echo "setup: running the test suite"
    ctest --preset release
    build sanitize
    echo "setup: running it again under the address and undefined-behaviour sanitizers"
    ctest --preset sanitize
    ;;
"")
    build release
    echo "setup: k25sim predict scenarios/tp8_bs1.yaml"
    build/release/k25sim predict scenarios/tp8_bs1.yaml
    echo
    echo "setup: the program is $PWD/build/release/k25sim; \`cmake --install build/release\` puts it where the shell finds it"
    ;;
*)
    echo "setup: unknown option '$1', expected --deps or --test" >&2
    exit 2
    ;;
esac
