# Installed into a folder of its own and called from elsewhere, the program finds its models and its measurements there.
set(PREFIX ${BUILD}/tests/installed)
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(arguments "predict;tp8_bs1" "validate;calib/points/kimi_k25.csv" "validate;calib/kernels_measured/mla_absorb.csv.gz")
  execute_process(COMMAND ${PREFIX}/bin/k25sim ${arguments} WORKING_DIRECTORY / OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# A message says which file was read.
execute_process(COMMAND ${PREFIX}/bin/k25sim validate calib/points/kimi_k25.csv --where none=1 WORKING_DIRECTORY /
                ERROR_VARIABLE message)
if(NOT message MATCHES "installed/bin/../share/k25sim/calib/points/kimi_k25.csv has no column 'none'")
  message(FATAL_ERROR "not the installed file: ${message}")
endif()
file(REMOVE_RECURSE ${PREFIX})
