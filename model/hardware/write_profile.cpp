#include "model/hardware/write_profile.h"

#include <fmt/format.h>

#include <map>
#include <span>
#include <string_view>

#include "model/hardware/profile_fields.h"
#include "model/hardware/units_text.h"

namespace spillway {
namespace {

/// In double quotes: the only escapes that a text of one line can need.
std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\x{:02x}", static_cast<int>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

template <typename Q>
std::string value_text(Q value) {
  return in_quotes(to_units_text(value));
}
std::string value_text(Count count) { return to_units_text(count); }

std::string origin_text(const Origin& origin) {
  return fmt::format("origin: {}, source: {}", name_of(origin.kind), in_quotes(origin.source));
}

template <typename Q>
std::string to_text(const Figure<Q>& figure) {
  return fmt::format("{{value: {}, {}}}", value_text(figure.value), origin_text(figure.origin));
}

std::string to_text(const GemmShape& shape) {
  return fmt::format("{{overhead: {}, depth: {}, operands: {}, result: {}, {}}}",
                     to_units_text(shape.overhead), to_units_text(shape.depth),
                     to_units_text(shape.operands), to_units_text(shape.result),
                     origin_text(shape.origin));
}

std::string to_text(const CollectiveFit& fit) {
  std::string text = fmt::format("{{gpus: {}, latency: {}, bus_bandwidth: {}", fit.gpus.value(),
                                 to_units_text(fit.latency), to_units_text(fit.bus_bandwidth));
  if (fit.pipeline > Seconds(0)) text += fmt::format(", pipeline: {}", to_units_text(fit.pipeline));
  if (fit.few_channels)
    text += fmt::format(", slow_bandwidth: {}, slow_up_to: {}",
                        to_units_text(fit.few_channels->bandwidth),
                        to_units_text(fit.few_channels->up_to));
  return text + "}";
}

class YamlWriter {
 public:
  std::string text;

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    if (indent_.empty()) text += '\n';
    text += fmt::format("{}{}:\n", indent_, key);
    indent_ += "  ";
    visit_inside();
    indent_.resize(indent_.size() - 2);
  }

  void field(std::string_view key, const std::string& value) { add(key, in_quotes(value)); }
  void field(std::string_view key, LinkKind kind) { add(key, name_of(kind)); }
  void field(std::string_view key, FabricKind kind) { add(key, name_of(kind)); }
  template <typename Q>
  void field(std::string_view key, const Figure<Q>& figure) {
    add(key, to_text(figure));
  }
  template <typename Q>
  void field(std::string_view key, const std::optional<Figure<Q>>& figure) {
    if (figure) field(key, *figure);
  }
  void field(std::string_view key, const CollectiveCosts& costs) {
    text += fmt::format("{}{}:\n{}  origin: {}\n{}  source: {}\n", indent_, key, indent_,
                        name_of(costs.origin.kind), indent_, in_quotes(costs.origin.source));
    text += fmt::format("{}  fits:\n", indent_);
    for (const CollectiveFit& fit : costs.fits)
      text += fmt::format("{}    - {}\n", indent_, to_text(fit));
  }
  template <typename Q>
  void table(std::string_view key, const FigureTable<Q>& figures,
             std::span<const std::string_view> types) {
    rows(key, figures, types);
  }
  template <typename Entry>
  void optional_table(std::string_view key,
                      const std::map<std::string, Entry, std::less<>>& entries,
                      std::span<const std::string_view> types) {
    if (!entries.empty()) rows(key, entries, types);
  }

 private:
  template <typename Table>
  void rows(std::string_view key, const Table& table, std::span<const std::string_view> types) {
    text += fmt::format("{}{}:\n", indent_, key);
    for (const std::string_view type : types)
      if (const auto found = table.find(type); found != table.end())
        text += fmt::format("{}  {}: {}\n", indent_, type, to_text(found->second));
  }
  void add(std::string_view key, std::string_view value) {
    text += fmt::format("{}{}: {}\n", indent_, key, value);
  }

  std::string indent_;
};

std::string commented(const std::string& comment) {
  if (comment.empty()) return "";
  std::string text = "# ";
  for (const char c : comment) {
    text += c;
    if (c == '\n') text += "# ";
  }
  return text + "\n";
}

}  // namespace

std::string to_yaml(const HardwareProfile& profile, const std::string& comment) {
  YamlWriter writer;
  writer.text = commented(comment) + fmt::format("schema: {}\n", kProfileSchema);
  visit_profile(profile, writer);
  return writer.text;
}

}  // namespace spillway
