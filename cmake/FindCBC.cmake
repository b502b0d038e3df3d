# COIN-OR's solver of mixed integer linear programs with its C interface: the target CBC::CBC.
# Debian: coinor-libcbc-dev.
find_path(CBC_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_library(CBC_SOLVER_LIBRARY CbcSolver)
find_library(CBC_LIBRARY Cbc)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CBC REQUIRED_VARS CBC_SOLVER_LIBRARY CBC_LIBRARY CBC_INCLUDE_DIR)
mark_as_advanced(CBC_INCLUDE_DIR CBC_SOLVER_LIBRARY CBC_LIBRARY)

if(CBC_FOUND AND NOT TARGET CBC::CBC)
  add_library(CBC::CBC INTERFACE IMPORTED)
  target_include_directories(CBC::CBC INTERFACE "${CBC_INCLUDE_DIR}")
  target_link_libraries(CBC::CBC INTERFACE "${CBC_SOLVER_LIBRARY}" "${CBC_LIBRARY}")
endif()
