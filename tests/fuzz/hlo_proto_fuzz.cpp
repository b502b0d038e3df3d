// libFuzzer target: bytes are read as a HloProto, and used when they pass. Every second input is
// damaged by field, since bytes changed at random seldom parse.
//   cmake --workflow --preset fuzz && build/fuzz/tests/fuzz/hlo_proto_fuzz -max_len=20000 CORPUS
#define DOCTEST_CONFIG_IMPLEMENT  // the toy machine's header refers to it
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/fuzz/mutate_proto.h"
#include "tests/fuzz/use_program.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string changed =
      spillway::testing::mutate_proto(std::string(reinterpret_cast<const char*>(data), size), seed);
  if (changed.empty() || changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::ranges::copy(changed, data);
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spillway::testing::use_proto(
      std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size));
  return 0;
}
