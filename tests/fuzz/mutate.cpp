#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace spillway::testing {
namespace {

class Mutator {
 public:
  Mutator(std::string text, std::uint32_t seed) : text_(std::move(text)), random_(seed) {}

  std::string run() {
    const std::size_t times = 1 + below(4);
    for (std::size_t i = 0; i < times && !text_.empty(); ++i) change();
    return std::move(text_);
  }

 private:
  using Change = void (Mutator::*)();

  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  std::size_t place() { return below(text_.size()); }

  void change() {
    static constexpr std::array<Change, 12> kChanges = {
        &Mutator::flip_byte,      &Mutator::flip_byte,    &Mutator::delete_piece,
        &Mutator::repeat_piece,   &Mutator::cut,          &Mutator::delete_line,
        &Mutator::repeat_line,    &Mutator::swap_lines,   &Mutator::replace_number,
        &Mutator::replace_number, &Mutator::replace_name, &Mutator::replace_shape};
    (this->*kChanges[below(kChanges.size())])();
  }

  void flip_byte() {
    static constexpr std::string_view kLikely = "(){}[],=%#/*\"'\\ \n0123456789-.:<xT";
    text_[place()] = below(4) == 0 ? static_cast<char>(random_()) : kLikely[below(kLikely.size())];
  }
  void delete_piece() {
    const std::size_t at = place();
    text_.erase(at, 1 + below(below(8) == 0 ? 4000 : 20));
  }
  void repeat_piece() {
    const std::size_t at = place();
    text_.insert(place(), text_.substr(at, 1 + below(below(8) == 0 ? 4000 : 40)));
  }
  void cut() {
    if (below(4) == 0) text_.resize(place());
  }

  struct Span {
    std::size_t begin = 0, end = 0;
  };
  Span line_at(std::size_t at) const {
    const std::size_t before = at == 0 ? std::string::npos : text_.rfind('\n', at - 1);
    const std::size_t behind = text_.find('\n', at);
    return {before == std::string::npos ? 0 : before + 1,
            behind == std::string::npos ? text_.size() : behind + 1};
  }
  std::string copy(Span span) const { return text_.substr(span.begin, span.end - span.begin); }

  void delete_line() {
    const Span line = line_at(place());
    text_.erase(line.begin, line.end - line.begin);
  }
  void repeat_line() {
    const std::string line = copy(line_at(place()));
    text_.insert(line_at(place()).begin, line);
  }
  void swap_lines() {
    Span a = line_at(place());
    Span b = line_at(place());
    if (a.begin > b.begin) std::swap(a, b);
    if (a.end > b.begin) return;
    const std::string first = copy(a);
    const std::string second = copy(b);
    text_.replace(b.begin, second.size(), first);
    text_.replace(a.begin, first.size(), second);
  }

  /// The first run of `chars` behind `at`; empty when there is none.
  Span next_run(std::size_t at, std::string_view chars) const {
    const std::size_t begin = std::min(text_.find_first_of(chars, at), text_.size());
    return {begin, std::min(text_.find_first_not_of(chars, begin), text_.size())};
  }
  void replace(Span span, const std::string& with) {
    text_.replace(span.begin, span.end - span.begin, with);
  }

  void replace_number() {
    static constexpr std::string_view kDigits = "0123456789";
    static const std::vector<std::string> kOdd = {"0",          "1",
                                                  "2",          "3",
                                                  "7",          "64",
                                                  "999999",     "2147483648",
                                                  "-1",         "4294967296",
                                                  "1000000000", "9223372036854775807",
                                                  "5.5",        "100000000000000000000"};
    const Span number = next_run(place(), kDigits);
    if (number.begin == number.end) return;
    replace(number, below(2) == 0 ? kOdd[below(kOdd.size())] : copy(next_run(place(), kDigits)));
  }

  static constexpr std::string_view kNameChars =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-#";
  /// %name, with or without #1.
  Span next_name(std::size_t at) const {
    const std::size_t percent = text_.find('%', at);
    if (percent == std::string::npos) return {};
    return next_run(percent + 1, kNameChars);
  }
  /// Mostly by a name nearby, so that it is defined in the same computation.
  void replace_name() {
    const std::size_t at = place();
    const Span name = next_name(at);
    if (name.begin == name.end) return;
    const std::size_t from = below(3) == 0 ? place() : at - std::min(at, below(2000));
    replace(name, copy(next_name(from)));
  }

  /// f32[8,128]{1,0}
  Span next_shape(std::size_t at) const {
    const std::size_t open = text_.find('[', at);
    if (open == std::string::npos) return {};
    std::size_t begin = open;
    while (begin > 0 && std::isalnum(static_cast<unsigned char>(text_[begin - 1])) != 0) --begin;
    std::size_t end = std::min(text_.find(']', open), text_.size() - 1) + 1;
    if (end < text_.size() && text_[end] == '{')
      end = std::min(text_.find('}', end), text_.size() - 1) + 1;
    return {begin, end};
  }
  void replace_shape() {
    const Span shape = next_shape(place());
    if (shape.begin == shape.end) return;
    replace(shape, copy(next_shape(place())));
  }

  std::string text_;
  std::mt19937 random_;
};

}  // namespace

std::string mutate(const std::string& text, std::uint32_t seed) {
  return Mutator(text, seed).run();
}

}  // namespace spillway::testing
