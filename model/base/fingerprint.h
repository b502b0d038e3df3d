// A hash that is the same on every machine, for telling apart what nobody makes to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace spillway {

/// FNV-1a with 64 bits.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xff);  // in no UTF-8: "ab", "c" is not "a", "bc"
  }
  void add(std::uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8)
      add_byte(static_cast<unsigned char>((number >> shift) & 0xff));
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }

  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace spillway
