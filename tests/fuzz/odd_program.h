// Programs of one instruction each: any opcode, any shape, any operands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::testing {

/// The text of a module whose entry holds one instruction between parameters, with a shape,
/// operands and attributes that mostly do not fit it. The same opcode and seed, the same text.
std::string odd_program(std::string_view opcode, std::uint32_t seed);

}  // namespace spillway::testing
