// Damages HLO text: as bits rot, as files are cut, as hands edit.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace spillway::testing {

/// `text` with one to four things changed: bytes flipped, pieces deleted, repeated or cut off,
/// lines exchanged, numbers, names and shapes replaced by others of the text. The same seed, the
/// same result.
std::string mutate(const std::string& text, std::uint32_t seed);

}  // namespace spillway::testing
