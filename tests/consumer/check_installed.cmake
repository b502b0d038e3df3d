# cmake -D BUILD_DIR=… -D SOURCE_DIR=… -D WORK_DIR=… -D CXX=… -D CXX_FLAGS=… -P check_installed.cmake
# Installs a build, moves the copy, builds the project beside this file against it, and runs it.
cmake_minimum_required(VERSION 3.25)

# run(name of the variable for its output, command…)
function(run output)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}\n${out}\n${err}")
  endif()
  set(${output} "${out}" PARENT_SCOPE)
endfunction()

# Headers include the standard library's and each other; nothing else has to be there.
function(check_headers root)
  file(GLOB_RECURSE headers RELATIVE "${root}" "${root}/*")
  list(LENGTH headers count)
  if(count LESS 50)
    message(FATAL_ERROR "only ${count} headers in ${root}")
  endif()
  foreach(header ${headers})
    file(STRINGS "${root}/${header}" includes REGEX "^#include ")
    foreach(include ${includes})
      string(REGEX REPLACE "^#include [<\"]([^>\"]+).*" "\\1" file "${include}")
      if(include MATCHES "<.*[./]" OR (include MATCHES "\"" AND NOT EXISTS "${root}/${file}"))
        message(FATAL_ERROR "${header} includes ${file}")
      endif()
    endforeach()
  endforeach()
endfunction()

# No file of the package leads back to where it was built.
function(check_no_path_of_ours package)
  file(GLOB_RECURSE files "${package}/*.cmake")
  foreach(file ${files})
    file(READ "${file}" text)
    foreach(folder "${SOURCE_DIR}" "${BUILD_DIR}" "${WORK_DIR}")
      string(FIND "${text}" "${folder}" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "${file} names ${folder}")
      endif()
    endforeach()
  endforeach()
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run(ignored "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/staged")
file(RENAME "${WORK_DIR}/staged" "${WORK_DIR}/prefix")  # a package may be moved
check_headers("${WORK_DIR}/prefix/include/spillway")
check_no_path_of_ours("${WORK_DIR}/prefix")

run(ignored "${CMAKE_COMMAND}" -G Ninja -S "${SOURCE_DIR}/tests/consumer" -B "${WORK_DIR}/build"
    "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DCMAKE_CXX_FLAGS=${CXX_FLAGS} -Wall -Wextra -Werror")
run(ignored "${CMAKE_COMMAND}" --build "${WORK_DIR}/build")

# The bytes are XLA's own, the time is what the installed binary says.
set(dump "${SOURCE_DIR}/examples/jax/dumps/keep")
file(READ "${dump}/truth.json" truth)
string(JSON bytes GET "${truth}" allocations device_bytes)
run(simulated "${CMAKE_COMMAND}" -E env --unset=SPILLWAY_HW_PROFILES
    "${WORK_DIR}/prefix/bin/spillway" simulate "${dump}" --hw gb200)
if(NOT simulated MATCHES "\nStep +([0-9.]+ s) ")
  message(FATAL_ERROR "no step in:\n${simulated}")
endif()
set(expected "${bytes} bytes of HBM, ${CMAKE_MATCH_1} a step\n")
run(printed "${WORK_DIR}/build/step_cost" "${dump}" gb200)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "expected: ${expected}printed:  ${printed}")
endif()
file(REMOVE_RECURSE "${WORK_DIR}")
