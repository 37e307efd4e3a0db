# cmake --install: the library, the programs, the public headers with those generated, and the package config for find_package(Wengert).
include(CMakePackageConfigHelpers)
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/Wengert)

install(TARGETS wengert wengert_rt EXPORT WengertTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(program wengert-cli wengert-opt)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${LLVM_LIBRARY_DIRS}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# The public headers, and the runtime's plain types that they show. Nothing of these reaches MLIR, LLVM or Eigen (tests/hygiene).
if(TARGET wengert-mpi)
  install(TARGETS wengert-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/frontend/wengert/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wengert FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${CMAKE_BINARY_DIR}/include/wengert/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wengert
  FILES_MATCHING PATTERN "*.inc" PATTERN runtime EXCLUDE)
install(DIRECTORY ${CMAKE_BINARY_DIR}/include/runtime/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wengert/runtime FILES_MATCHING PATTERN "*.inc")
# Inside the tree the runtime's headers name each other "runtime/X"; an installed one says "wengert/runtime/X".
install(CODE "
  file(GLOB headers \"${CMAKE_SOURCE_DIR}/runtime/*.h\")
  foreach(header \${headers})
    get_filename_component(name \${header} NAME)
    file(READ \${header} text)
    string(REPLACE \"#include \\\"runtime/\" \"#include \\\"wengert/runtime/\" text \"\${text}\")
    file(CONFIGURE OUTPUT \"${CMAKE_BINARY_DIR}/installed/\${name}\" CONTENT \"\${text}\" @ONLY)
    file(INSTALL \"${CMAKE_BINARY_DIR}/installed/\${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/wengert/runtime\")
  endforeach()
")

install(EXPORT WengertTargets NAMESPACE Wengert:: DESTINATION ${config})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/WengertConfig.cmake.in ${CMAKE_BINARY_DIR}/WengertConfig.cmake INSTALL_DESTINATION ${config})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/WengertConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/WengertConfig.cmake ${CMAKE_BINARY_DIR}/WengertConfigVersion.cmake DESTINATION ${config})
