# What octavo builds on: Debian's header libraries and the pinned torch wheel.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)

if(OCTAVO_TORCH)
  # `./dev` passes CMAKE_PREFIX_PATH = the wheel's share/cmake.
  find_package(Torch REQUIRED)
  # The wheel holds Gloo's code but not its headers; those of another version do: only c10d's own calls are made.
  find_path(OCTAVO_GLOO_HEADERS gloo/context.h)
  if(NOT OCTAVO_GLOO_HEADERS)
    message(FATAL_ERROR "gloo/context.h was not found: install Gloo's headers (Debian: apt-get install libgloo-dev)")
  endif()
endif()
if(OCTAVO_TESTS)
  find_package(doctest REQUIRED)
endif()
if(OCTAVO_BENCH)
  find_package(benchmark REQUIRED)
endif()

# ccache sees through precompiled headers only when told to ignore their times.
find_program(OCTAVO_CCACHE ccache)
if(OCTAVO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${OCTAVO_CCACHE})
endif()
