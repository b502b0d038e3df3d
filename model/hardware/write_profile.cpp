#include "model/hardware/write_profile.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string_view>

#include "model/hardware/profile_fields.h"

namespace spillway {
namespace {

/// In double quotes, where only these two characters mean something else.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

struct YamlWriter {
  std::string text;
  std::string indent;

  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    text += indent + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    line("{}:", key);
    indent += "  ";
    visit_inside();
    indent.resize(indent.size() - 2);
  }

  void field(std::string_view key, const std::string& value) { line("{}: {}", key, quoted(value)); }
  void field(std::string_view key, LinkKind kind) { line("{}: {}", key, name_of(kind)); }
  void field(std::string_view key, FabricKind kind) { line("{}: {}", key, name_of(kind)); }

  template <typename Q>
  void field(std::string_view key, const Figure<Q>& figure) {
    line("{}: {{value: {}, origin: {}, source: {}}}", key, quoted(to_units_text(figure.value)),
         name_of(figure.origin.kind), quoted(figure.origin.source));
  }
  template <typename Q>
  void field(std::string_view key, const std::optional<Figure<Q>>& figure) {
    if (figure) field(key, *figure);
  }

  template <typename Q>
  void table(std::string_view key, const FigureTable<Q>& table,
             std::span<const std::string_view> types) {
    section(key, [&] {
      for (const std::string_view type : types)
        if (const auto found = table.find(type); found != table.end()) field(type, found->second);
    });
  }

  void field(std::string_view key, const CollectiveCosts& costs) {
    section(key, [&] {
      line("origin: {}", name_of(costs.origin.kind));
      line("source: {}", quoted(costs.origin.source));
      line("fits:");
      for (const CollectiveFit& fit : costs.fits)
        line("  - {{gpus: {}, latency: {}, bus_bandwidth: {}}}", to_units_text(fit.gpus),
             to_units_text(fit.latency), to_units_text(fit.bus_bandwidth));
    });
  }
};

}  // namespace

std::string to_yaml(const HardwareProfile& profile) {
  YamlWriter writer;
  writer.line("schema: {}", kProfileSchema);
  visit_profile(profile, writer);
  return std::move(writer.text);
}

}  // namespace spillway
