# The installed package: find_package(octavo) gives octavo::<folder> for every folder that was built.
include(CMakePackageConfigHelpers)

get_property(octavo_installed GLOBAL PROPERTY OCTAVO_COMPONENTS)
install(TARGETS ${octavo_installed} EXPORT octavoTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET octavo_program)  # installed where it is made; it finds libtorch where it was built against it
  set_target_properties(octavo_program PROPERTIES INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
endif()

set(octavo_header_folders ${OCTAVO_CORE_FOLDERS})  # comm/threads has private headers only
if(OCTAVO_TORCH)
  list(APPEND octavo_header_folders ${OCTAVO_TORCH_FOLDERS})
endif()
foreach(folder IN LISTS octavo_header_folders)
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/include/octavo/${folder})
    install(DIRECTORY include/octavo/${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/octavo/${folder}
            FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(octavo_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/octavo)
install(EXPORT octavoTargets NAMESPACE octavo:: DESTINATION ${octavo_package_folder})
configure_package_config_file(cmake/octavoConfig.cmake.in ${CMAKE_BINARY_DIR}/octavoConfig.cmake
                              INSTALL_DESTINATION ${octavo_package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/octavoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/octavoConfig.cmake ${CMAKE_BINARY_DIR}/octavoConfigVersion.cmake
        DESTINATION ${octavo_package_folder})

# Installs into a temporary folder, then configures, builds and runs the program in tests/package against it.
if(OCTAVO_TESTS)
  add_test(NAME package
    COMMAND ${CMAKE_COMMAND}
      "-DBINARY_DIR=${CMAKE_BINARY_DIR}" "-DSOURCE_DIR=${CMAKE_SOURCE_DIR}" "-DCXX_COMPILER=${CMAKE_CXX_COMPILER}"
      "-DSANITIZE=${OCTAVO_SANITIZE}" "-DWITH_TORCH=${OCTAVO_TORCH}" "-DPREFIX_PATH=${CMAKE_PREFIX_PATH}"
      -P ${CMAKE_SOURCE_DIR}/tests/package/check.cmake
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(package PROPERTIES LABELS package TIMEOUT 600)
endif()
