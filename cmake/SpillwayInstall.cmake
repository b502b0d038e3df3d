# What `cmake --install` puts down: the binary, its machines where it looks for them, and for other
# projects the two libraries, their headers and the package that find_package(spillway) reads.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/spillway")
set(SPILLWAY_PROFILES_DIR "${CMAKE_INSTALL_DATADIR}/spillway/hw_profiles")

install(TARGETS spillway)
install(DIRECTORY hw_profiles/ DESTINATION "${SPILLWAY_PROFILES_DIR}")

# Headers keep their folders: "model/hlo/read_program.h" is included by that name outside, too.
# The protos' library has no header that anybody else sees, but static libraries need it linked.
set_target_properties(spillway_model PROPERTIES EXPORT_NAME model)
set_target_properties(spillway_sim PROPERTIES EXPORT_NAME sim)
set_target_properties(spillway_hlo_proto PROPERTIES EXPORT_NAME hlo_proto)
set_target_properties(spillway_run_proto PROPERTIES EXPORT_NAME run_proto)
install(TARGETS spillway_model spillway_sim spillway_hlo_proto spillway_run_proto
        EXPORT spillway_targets
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/spillway")
install(EXPORT spillway_targets NAMESPACE spillway:: FILE spillwayTargets.cmake
        DESTINATION "${package_dir}")

configure_package_config_file(
  cmake/spillwayConfig.cmake.in "${PROJECT_BINARY_DIR}/spillwayConfig.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS SPILLWAY_PROFILES_DIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/spillwayConfig.cmake"
              "${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake" cmake/FindCBC.cmake
        DESTINATION "${package_dir}")
