# Run by the test "package" (cmake/octavo_install.cmake): install, then configure, build and run this folder's program.
set(work "${BINARY_DIR}/package_test")
file(REMOVE_RECURSE "${work}")
set(flags)
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()

# As environment, because a list of paths does not survive being an argument.
list(JOIN PREFIX_PATH ":" search_path)
set(ENV{CMAKE_PREFIX_PATH} "${search_path}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "'${command}' failed (${code}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("${CMAKE_COMMAND}" --install "${BINARY_DIR}" --prefix "${work}/installed")
run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE_DIR}/tests/package" -B "${work}/build"
    "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_BUILD_TYPE=Debug"
    "-Doctavo_ROOT=${work}/installed")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/plan_ahead" "${SOURCE_DIR}/tests/package/config.json")
# embedding 256 x 64, attention 64 x (64 + 2 x 32 + 64), MLP 3 x 64 x 128, three norms of 64
if(NOT output STREQUAL "data=2 fold=4: 64 rows each, 53440 parameters\n")
  message(FATAL_ERROR "plan_ahead printed: ${output}")
endif()
if(WITH_TORCH)
  run("${work}/build/one_operation")
  run("${work}/installed/bin/octavo" --help)
endif()
