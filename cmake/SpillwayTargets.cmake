# Targets of Spillway: one place for warnings, sanitizers and header sets.

# spillway_compile_options(target): what every target of ours is compiled with.
function(spillway_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  # `check` names its file from the top of the repository, wherever that lay when it was built.
  target_compile_options(${target} PRIVATE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)  # false alarms of GCC 12
  endif()
  if(SPILLWAY_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(SPILLWAY_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${SPILLWAY_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${SPILLWAY_SANITIZE})
  endif()
  if(SPILLWAY_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # counts what a fuzzer reaches
    target_link_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# spillway_library(name [EXCLUDE regex]): a static library of every source and header below the
# current folder, but for those whose path the expression matches.
# Headers are included by their path from the top of the repository and each is compiled alone by
# the target all_verify_interface_header_sets.
function(spillway_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cpp")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "*.h")
  cmake_parse_arguments(PARSE_ARGV 1 library "" "EXCLUDE" "")
  if(library_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${library_EXCLUDE}")
    list(FILTER headers EXCLUDE REGEX "${library_EXCLUDE}")
  endif()
  add_library(${name} STATIC ${sources})
  target_sources(${name} PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  spillway_compile_options(${name})
endfunction()

# spillway_proto_library(name proto): what protoc makes of a proto in the current folder, as a static
# library. Its header is included by its path from the top of the repository: model/hlo/proto/hlo.pb.h.
function(spillway_proto_library name proto)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
  file(MAKE_DIRECTORY "${generated}/${folder}")
  add_library(${name} STATIC)
  protobuf_generate(TARGET ${name} LANGUAGE cpp PROTOS "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
                    PROTOC_OUT_DIR "${generated}/${folder}")
  target_include_directories(${name} SYSTEM PUBLIC "$<BUILD_INTERFACE:${generated}>")
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf-lite)
  target_compile_options(${name} PRIVATE -w)
  if(SPILLWAY_SANITIZE)
    target_compile_options(${name} PRIVATE -fsanitize=${SPILLWAY_SANITIZE} -fno-omit-frame-pointer)
  endif()
endfunction()
