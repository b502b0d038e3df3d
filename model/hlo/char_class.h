// What a byte of HLO text may be part of: one table look-up instead of comparisons.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace spillway::hlo {

enum CharClass : std::uint16_t {
  kName = 1,         ///< a name: letters, digits and . _ - $ :
  kWord = 2,         ///< an operation or the name of an attribute
  kDigit = 4,        ///< 0 … 9
  kBlank = 8,        ///< blank, tab, line end
  kTypeName = 16,    ///< f32, bf16, f8e4m3fn
  kDims = 32,        ///< between the brackets of a shape
  kLayout = 64,      ///< between the braces of an ordinary layout
  kTupleStop = 128,  ///< where the reader of a tuple's shape must look
  kGroupStop = 256,  ///< the same within any brackets
  kValueStop = 512,  ///< the same in the bare value of an attribute
};

namespace internal {

constexpr std::array<std::uint16_t, 256> make_char_classes() {
  std::array<std::uint16_t, 256> classes{};
  const auto add = [&classes](std::string_view chars, unsigned bits) {
    for (const char c : chars) {
      std::uint16_t& of = classes[static_cast<unsigned char>(c)];
      of = static_cast<std::uint16_t>(of | bits);
    }
  };
  constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  add(kLower, kName | kWord | kTypeName | kLayout);
  add(kUpper, kName | kWord | kLayout);
  add("0123456789", kName | kWord | kDigit | kTypeName | kDims | kLayout);
  add("-_", kName | kWord);
  add(".$:", kName);
  add(" \t\r\n", kBlank);
  add(",<= ", kDims);
  add(",:()*#- ", kLayout);
  constexpr std::string_view kEnd("\0", 1);
  add("()/\"'", kTupleStop);
  add(kEnd, kTupleStop | kGroupStop | kValueStop);
  add("(){}[]\"'/", kGroupStop | kValueStop);
  add(", \t\r\n", kValueStop);
  return classes;
}
inline constexpr auto kCharClasses = make_char_classes();

}  // namespace internal

constexpr bool is(char c, CharClass wanted) {
  return (internal::kCharClasses[static_cast<unsigned char>(c)] & wanted) != 0;
}

}  // namespace spillway::hlo
