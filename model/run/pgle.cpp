#include "model/run/pgle.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/base/read_file.h"

namespace spillway {
namespace {

/// What the file says, before names are looked at.
struct Entry {
  std::string name, target;  ///< target: of latencies
  double us = 0;
};
struct RawProfile {
  std::vector<Entry> costs, latencies;
};

/// Protobuf's text format, as far as a profile needs it: names, strings, numbers, braces.
class TextParser {
 public:
  TextParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Result<RawProfile> run() {
    RawProfile profile;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      const std::size_t begin = at_;
      const std::string_view field = word();
      const bool is_cost = field == "costs";
      if (!is_cost && field != "latencies")
        return fail(begin, "'costs' or 'latencies' expected",
                    "for example: costs { name: \"fusion.1\" cost_us: 12.5 }");
      skip_space();
      if (peek() == ':') ++at_;
      skip_space();
      if (peek() != '{' && peek() != '<') return fail(at_, "a '{' expected", "");
      ++at_;
      Entry entry;
      if (auto error = read_entry(entry)) return *error;
      (is_cost ? profile.costs : profile.latencies).push_back(std::move(entry));
    }
    return profile;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  Error fail(std::size_t at, std::string text, std::string advice) const {
    return error_in_text(path_, text_, at, std::move(text), std::move(advice));
  }

  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (std::string_view(" \t\r\n,;").find(text_[at_]) == std::string_view::npos)
        return;
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    const auto stands_in_word = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.' || c == '-' || c == '+';
    };
    while (at_ < text_.size() && stands_in_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::optional<Error> read_entry(Entry& entry) {
    for (skip_space(); peek() != '}' && peek() != '>'; skip_space()) {
      const std::size_t begin = at_;
      const std::string_view field = word();
      skip_space();
      if (peek() != ':') return fail(begin, "a field with a ':' expected", "");
      ++at_;
      skip_space();
      if (field == "name" || field == "source" || field == "target") {
        if (auto error = read_string(field == "target" ? entry.target : entry.name)) return error;
      } else if (field == "cost_us" || field == "latency_us") {
        if (auto error = read_number(entry.us)) return error;
      } else {
        return fail(begin, "a profile has no field " + quoted(field),
                    "name, cost_us; source, target, latency_us");
      }
    }
    ++at_;
    return std::nullopt;
  }

  std::optional<Error> read_string(std::string& value) {
    const char quote = peek();
    if (quote != '"' && quote != '\'') return fail(at_, "a string in quotes expected", "");
    value.clear();
    for (std::size_t k = at_ + 1; k < text_.size(); ++k) {
      if (text_[k] == quote) {
        at_ = k + 1;
        return std::nullopt;
      }
      if (text_[k] == '\\' && k + 1 < text_.size()) ++k;  // a quote or a backslash
      value += text_[k];
    }
    return fail(at_, "a string without an end", "");
  }

  std::optional<Error> read_number(double& value) {
    const std::size_t begin = at_;
    const std::string_view number = word();
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value))
      return fail(begin, "a number expected", "");
    return std::nullopt;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

/// Protobuf's wire format. Fields that a profile does not have are skipped.
class WireParser {
 public:
  explicit WireParser(std::string_view bytes) : rest_(bytes) {}

  std::optional<RawProfile> run() {
    RawProfile profile;
    while (!rest_.empty()) {
      const auto field = next();
      if (!field) return std::nullopt;
      if (field->number > 2 || !field->is_bytes) continue;
      Entry entry;
      WireParser inner(field->bytes);
      while (!inner.rest_.empty()) {
        const auto part = inner.next();
        if (!part) return std::nullopt;
        const bool is_cost = field->number == 1;
        if (part->number == 1 && part->is_bytes) entry.name = part->bytes;
        if (part->number == 2 && part->is_bytes && !is_cost) entry.target = part->bytes;
        if (part->number == (is_cost ? 2u : 3u) && !part->is_bytes)
          entry.us = std::bit_cast<double>(part->value);
      }
      if (!std::isfinite(entry.us)) return std::nullopt;
      (field->number == 1 ? profile.costs : profile.latencies).push_back(std::move(entry));
    }
    return profile;
  }

 private:
  struct Field {
    std::uint64_t number = 0, value = 0;
    std::string_view bytes;
    bool is_bytes = false;
  };

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> next() {
    const auto key = varint();
    if (!key) return std::nullopt;
    Field field{*key >> 3, 0, {}, false};
    if (field.number == 0) return std::nullopt;
    std::uint64_t size = 0;
    switch (*key & 7) {
      case 0: {
        const auto value = varint();
        return value ? std::optional(field) : std::nullopt;
      }
      case 1:
        size = 8;
        break;
      case 2: {
        const auto length = varint();
        if (!length) return std::nullopt;
        size = *length;
        field.is_bytes = true;
        break;
      }
      case 5:
        size = 4;
        break;
      default:
        return std::nullopt;
    }
    if (size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (!field.is_bytes)
      for (std::size_t k = 0; k < size; ++k)
        field.value |= std::uint64_t{static_cast<unsigned char>(field.bytes[k])} << (8 * k);
    return field;
  }

  std::string_view rest_;
};

/// "x" of "x.remat" and "x.remat12".
std::string_view without_clone_suffix(std::string_view name) {
  constexpr std::string_view kSuffix = ".remat";
  const std::size_t at = name.rfind(kSuffix);
  if (at == std::string_view::npos) return name;
  const std::string_view number = name.substr(at + kSuffix.size());
  const bool is_clone = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return is_clone ? name.substr(0, at) : name;
}

/// The name without the module it belongs to; empty where that is another.
std::optional<std::string_view> name_in_module(std::string_view name,
                                               std::string_view fingerprint) {
  const std::size_t at = name.find("::");
  if (at == std::string_view::npos) return name;
  const std::string_view rest = name.substr(at + 2);
  if (name.substr(0, at) != fingerprint || rest.find("::") != std::string_view::npos)
    return std::nullopt;
  return rest;
}

ProfiledInstructions take_in(const RawProfile& raw, std::string_view fingerprint) {
  ProfiledInstructions profile;
  std::vector<std::pair<std::string_view, double>> kept;
  bool has_clones = false;
  for (const Entry& cost : raw.costs) {
    const auto name = name_in_module(cost.name, fingerprint);
    if (!name) continue;
    kept.emplace_back(*name, cost.us);
    has_clones = has_clones || name->find(".remat") != std::string_view::npos;
  }
  if (!has_clones) {
    for (const auto& [name, us] : kept) profile.cost_us[std::string(name)] = us;  // the last counts
    for (const Entry& latency : raw.latencies)
      profile.latency_us[{latency.name, latency.target}] = latency.us;
    return profile;
  }
  std::map<std::string, std::pair<double, double>, std::less<>> sums;
  for (const auto& [name, us] : kept) {
    auto& [sum, count] = sums[std::string(without_clone_suffix(name))];
    sum += us;
    count += 1;
  }
  for (const auto& [name, sum] : sums) profile.cost_us[name] = sum.first / sum.second;
  return profile;
}

/// The wire format has lengths and numbers between its names.
bool looks_like_text(std::string_view bytes) {
  return std::ranges::none_of(bytes, [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
}

}  // namespace

Result<ProfiledInstructions> parse_pgle(std::string_view bytes, const std::string& path,
                                        std::string_view fingerprint) {
  const bool is_binary =
      path.ends_with(".pb") || (!path.ends_with(".pbtxt") && !looks_like_text(bytes));
  if (is_binary) {
    const auto raw = WireParser(bytes).run();
    if (!raw)
      return error_in_file(path, "no profile in protobuf's wire format",
                           "XLA reads a .pb so; text goes into a .pbtxt");
    return take_in(*raw, fingerprint);
  }
  const Result<RawProfile> raw = TextParser(bytes, path).run();
  if (!raw.ok()) return raw.error();
  return take_in(*raw, fingerprint);
}

bool is_modelled_profile(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, bytes.find('\n'));
  return first.starts_with('#') && first.ends_with(kModelledProfileMark);
}

std::string_view fingerprint_before_lhs(const Program& program) {
  if (!program.text) return {};
  // It stands in the module's first line.
  const std::string_view text = *program.text;
  const std::string_view head = text.substr(0, text.find('\n'));
  constexpr std::string_view kKey = "fingerprint_before_lhs=\"";
  const std::size_t at = head.find(kKey);
  if (at == head.npos) return {};
  const std::string_view rest = head.substr(at + kKey.size());
  return rest.substr(0, rest.find('"'));
}

Result<ProfiledInstructions> read_pgle(const std::string& path, std::string_view fingerprint) {
  const auto bytes = read_file(path);
  if (!bytes.ok()) return bytes.error();
  return parse_pgle(**bytes, path, fingerprint);
}

std::string_view scheduling_name(const Computation& computation, InstructionIndex i) {
  const std::string_view own = computation[i].name;
  const std::string_view name = metadata_field(computation, i, "scheduling_name");
  if (name.empty()) return is_remat_clone(computation[i]) ? without_clone_suffix(own) : own;
  const bool of_another = find_opcode(name.substr(0, name.find('.'))) == Opcode::kGetTupleElement;
  return of_another ? own : name;
}

}  // namespace spillway
