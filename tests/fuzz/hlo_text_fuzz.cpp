// libFuzzer target: any bytes are read as HLO text, and used when they pass.
//   cmake --workflow --preset fuzz && build/fuzz/tests/fuzz/hlo_text_fuzz -max_len=20000 CORPUS
#define DOCTEST_CONFIG_IMPLEMENT  // the toy machine's header refers to it
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/fuzz/use_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spillway::testing::use_program(
      std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size));
  return 0;
}
