#!/bin/sh
# Installs what is missing, builds the program, and predicts a first step. Run again at any time: it does only what is
# left to do.
#   ./setup.sh         build the program, and run `k25sim predict scenarios/tp8_bs1.yaml`
#   ./setup.sh --deps  only install the packages
#   ./setup.sh --test  build everything with gcc and with clang, and run the whole test suite twice
set -eu
cd "$(dirname "$0")"

PACKAGES="gcc libc6-dev cmake ninja-build pkg-config libgsl-dev libyaml-dev libisal-dev libsqlite3-dev libjansson-dev libpopt-dev libmuparser-dev libcmocka-dev python3"
TEST_PACKAGES="clang libomp-dev clang-format git mandoc openmpi-bin libopenmpi-dev jupyter-nbconvert python3-ipykernel python3-matplotlib"
LOG=build/apt.log

install_missing() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -z "$missing" ] && return
    echo "setup: installing$missing"
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root="sudo"
    mkdir -p build
    # shellcheck disable=SC2086
    if ! { $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } \
        >"$LOG" 2>&1; then
        tail -n 5 "$LOG" >&2
        echo "setup: the packages could not be installed; $PWD/$LOG has all that apt said" >&2
        exit 3
    fi
}

# build PRESET TARGET [OPTION]...
build() {
    preset="$1"
    target="$2"
    shift 2
    echo "setup: building build/$preset"
    cmake --preset "$preset" "$@" >/dev/null
    cmake --build --preset "$preset" --target "$target"
}

# shellcheck disable=SC2086
install_missing $PACKAGES
case "${1:-}" in
--deps) ;;
--test)
    # shellcheck disable=SC2086
    install_missing $TEST_PACKAGES
    build release all -DK25_WERROR=ON
    build clang all -DK25_WERROR=ON
    echo "setup: running the test suite"
    ctest --preset release -j "$(nproc)"
    build sanitize all -DK25_WERROR=ON
    echo "setup: running it again under the address and undefined-behaviour sanitizers"
    ctest --preset sanitize -j "$(nproc)"
    ;;
"")
    build release program
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
