#include "model/hlo/text_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>

namespace spillway::hlo {
namespace {

TEST_CASE("a table behaves as std::map does") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::set<std::string> texts;  // addresses stay
    TextTable<int> table;
    std::map<std::string, int> expected;
    for (int round = 0; round < 4; ++round) {
      const int keys = round % 2 == 0 ? 5000 : 5;
      for (int i = 0; i < keys; ++i) {
        std::string key(random() % 20, 'a');
        for (char& c : key) c = static_cast<char>('a' + random() % 3);
        const std::string& kept = *texts.insert(key).first;
        CHECK((table.find(kept) != nullptr) == expected.contains(kept));
        bool is_new = false;
        int& value = table.insert(kept, is_new);
        CHECK(is_new == !expected.contains(kept));
        if (is_new) value = expected[kept] = static_cast<int>(random());
        CHECK(value == expected[kept]);
      }
      for (const auto& [key, value] : expected) CHECK(*table.find(key) == value);
      table.clear();
      expected.clear();
      CHECK(table.find("a") == nullptr);
    }
  }
}

TEST_CASE("texts of every size are compared and hashed whole") {
  std::string text;
  for (int i = 0; i < 64; ++i) text += static_cast<char>('!' + i);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string same = text.substr(0, size);
    CHECK(same_text(text.data(), same.data(), size));
    CHECK(hash_text(same) == hash_text(std::string_view(text).substr(0, size)));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = same;
      other[i] = 'Z';
      if (other == same) continue;
      CHECK_FALSE(same_text(other.data(), same.data(), size));
    }
  }
}

}  // namespace
}  // namespace spillway::hlo
