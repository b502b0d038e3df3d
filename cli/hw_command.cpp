#include "cli/hw_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "cli/command.h"
#include "model/base/format.h"
#include "model/base/result.h"
#include "model/hardware/check_profile.h"
#include "model/hardware/profile_fields.h"
#include "sim/report/table.h"

namespace spillway {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "spillway.hw/1";

std::string readable(Bytes bytes) { return format_bytes(bytes); }
std::string readable(Count count) { return format_count(count.value()); }
template <typename Q>
std::string readable(Q value) {
  return to_units_text(value);
}

std::string readable_fit(const CollectiveFit& fit) {
  std::string text =
      fmt::format("{} + bus bytes / {}", readable(fit.latency), readable(fit.bus_bandwidth));
  if (fit.pipeline > Seconds(0)) text += fmt::format(", pipeline {}", readable(fit.pipeline));
  if (fit.few_channels)
    text += fmt::format(", up to {} at {}", readable(fit.few_channels->up_to),
                        readable(fit.few_channels->bandwidth));
  return text;
}

struct OriginCounts {
  std::array<int, std::size(kOriginKinds)> of{};

  void add(const Origin& origin) { ++of[static_cast<std::size_t>(origin.kind)]; }
  std::string text() const {
    std::string parts;
    int total = 0;
    for (const OriginKind kind : kOriginKinds) {
      const int n = of[static_cast<std::size_t>(kind)];
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", n, name_of(kind));
      total += n;
    }
    return fmt::format("{} figures: {}", total, parts);
  }
};

/// Fills the table of `hw show`.
struct TextVisitor {
  TextTable rows{{"", "value", "origin", "source"}};
  OriginCounts counts;
  std::string indent;

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    if (indent.empty()) rows.add({""});
    rows.add({indent + std::string(key)});
    indent += "  ";
    visit_inside();
    indent.resize(indent.size() - 2);
  }

  void field(std::string_view key, const std::string& value) {
    if (!indent.empty()) rows.add({indent + std::string(key), value});
  }
  void field(std::string_view key, LinkKind kind) { field(key, std::string(name_of(kind))); }
  void field(std::string_view key, FabricKind kind) { field(key, std::string(name_of(kind))); }
  template <typename Q>
  void field(std::string_view key, const Figure<Q>& figure) {
    add(key, readable(figure.value), figure.origin);
  }
  template <typename Q>
  void field(std::string_view key, const std::optional<Figure<Q>>& figure) {
    if (figure) field(key, *figure);
  }
  void field(std::string_view key, const CollectiveCosts& costs) {
    add(key, "", costs.origin);
    for (const CollectiveFit& fit : costs.fits)
      rows.add({fmt::format("{}  {} GPUs", indent, fit.gpus.value()), readable_fit(fit)});
  }
  void field(std::string_view key, const GemmShape& shape) {
    add(key,
        fmt::format("{}, {} deep, {} operands, {} result", readable(shape.overhead),
                    readable(shape.depth), readable(shape.operands), readable(shape.result)),
        shape.origin);
  }
  template <typename Q>
  void table(std::string_view key, const FigureTable<Q>& figures,
             std::span<const std::string_view> types) {
    for (const std::string_view type : types)
      if (const auto found = figures.find(type); found != figures.end())
        field(fmt::format("{}.{}", key, type), found->second);
  }
  template <typename Entry>
  void optional_table(std::string_view key,
                      const std::map<std::string, Entry, std::less<>>& entries,
                      std::span<const std::string_view> types) {
    for (const std::string_view type : types)
      if (const auto found = entries.find(type); found != entries.end())
        field(fmt::format("{}.{}", key, type), found->second);
  }

 private:
  void add(std::string_view key, std::string value, const Origin& origin) {
    counts.add(origin);
    rows.add({indent + std::string(key), std::move(value), std::string(name_of(origin.kind)),
              origin.source});
  }
};

/// What a number is called once it has left the type system: "hbm_capacity" + "_bytes".
template <typename Q>
constexpr std::string_view kSuffix = "";
template <>
constexpr std::string_view kSuffix<Bytes> = "_bytes";
template <>
constexpr std::string_view kSuffix<BytesPerSecond> = "_bytes_per_second";
template <>
constexpr std::string_view kSuffix<FlopsPerSecond> = "_flops_per_second";
template <>
constexpr std::string_view kSuffix<Seconds> = "_seconds";
template <>
constexpr std::string_view kSuffix<Hertz> = "_hertz";
template <>
constexpr std::string_view kSuffix<Factor> = "_factor";

Json to_json(const Origin& origin) {
  return {{"origin", name_of(origin.kind)}, {"source", origin.source}};
}
template <typename Q>
Json to_json(const Figure<Q>& figure) {
  return {{"value", figure.value.value()},
          {"origin", name_of(figure.origin.kind)},
          {"source", figure.origin.source}};
}

Json to_json(const GemmShape& shape) {
  return {{"overhead_seconds", shape.overhead.value()}, {"depth_seconds", shape.depth.value()},
          {"operands_factor", shape.operands.value()},  {"result_factor", shape.result.value()},
          {"origin", name_of(shape.origin.kind)},       {"source", shape.origin.source}};
}
Json to_json(const CollectiveFit& fit) {
  Json json = {{"gpus", fit.gpus.value()},
               {"latency_seconds", fit.latency.value()},
               {"bus_bandwidth_bytes_per_second", fit.bus_bandwidth.value()}};
  if (fit.pipeline > Seconds(0)) json["pipeline_seconds"] = fit.pipeline.value();
  if (fit.few_channels) {
    json["slow_bandwidth_bytes_per_second"] = fit.few_channels->bandwidth.value();
    json["slow_up_to_bytes"] = fit.few_channels->up_to.value();
  }
  return json;
}

/// Builds the object of `hw show --json`; `open` is the object we are in.
struct JsonVisitor {
  Json root = Json::object();
  Json* open = &root;

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    Json inside = Json::object();
    Json* const outside = std::exchange(open, &inside);
    visit_inside();
    open = outside;
    (*open)[std::string(key)] = std::move(inside);
  }

  void field(std::string_view key, const std::string& value) { (*open)[std::string(key)] = value; }
  void field(std::string_view key, LinkKind kind) { (*open)[std::string(key)] = name_of(kind); }
  void field(std::string_view key, FabricKind kind) { (*open)[std::string(key)] = name_of(kind); }
  template <typename Q>
  void field(std::string_view key, const Figure<Q>& figure) {
    (*open)[fmt::format("{}{}", key, kSuffix<Q>)] = to_json(figure);
  }
  template <typename Q>
  void field(std::string_view key, const std::optional<Figure<Q>>& figure) {
    if (figure) field(key, *figure);
  }
  void field(std::string_view key, const CollectiveCosts& costs) {
    Json& json = (*open)[std::string(key)] = to_json(costs.origin);
    for (const CollectiveFit& fit : costs.fits) json["fits"].push_back(to_json(fit));
  }
  template <typename Q>
  void table(std::string_view key, const FigureTable<Q>& figures,
             std::span<const std::string_view> types) {
    Json& json = (*open)[fmt::format("{}{}", key, kSuffix<Q>)] = Json::object();
    for (const std::string_view type : types)
      if (const auto found = figures.find(type); found != figures.end())
        json[std::string(type)] = to_json(found->second);
  }
  void optional_table(std::string_view key, const FigureTable<Factor>& figures,
                      std::span<const std::string_view> types) {
    if (!figures.empty()) table(key, figures, types);
  }
  void optional_table(std::string_view key, const GemmShapeTable& shapes,
                      std::span<const std::string_view> types) {
    for (const std::string_view type : types)
      if (const auto found = shapes.find(type); found != shapes.end())
        (*open)[std::string(key)][std::string(type)] = to_json(found->second);
  }
};

HwResult failed(const Error& error) {
  return {error.kind == ErrorKind::kUsage ? kWrongUsage : kWrongInput, "", to_text(error) + "\n"};
}

std::string_view name_of(Finding::Severity severity) {
  return severity == Finding::Severity::kError ? "error" : "warning";
}

bool has_error(const std::vector<Finding>& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& f) { return f.severity == Finding::Severity::kError; });
}

/// Paths need not be UTF-8.
std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// One line a machine.
std::string render_profile_list(const std::vector<HardwareProfile>& profiles) {
  TextTable table(
      {"id", "memory", "link", "to device", "to host", "both", "GPUs a host", "machine"});
  for (const HardwareProfile& p : profiles)
    table.add({p.id, readable(p.device.hbm_capacity.value), std::string(name_of(p.link.kind)),
               readable(p.link.host_to_device.value), readable(p.link.device_to_host.value),
               readable(p.link.both_directions.value), readable(gpus_per_host(p.host)), p.name});
  return table.text(0);
}

std::string render_profile_list_json(const std::vector<HardwareProfile>& profiles) {
  Json json{{"schema", kSchema}, {"profiles", Json::array()}};
  for (const HardwareProfile& p : profiles)
    json["profiles"].push_back(
        {{"id", p.id},
         {"name", p.name},
         {"hbm_capacity_bytes", p.device.hbm_capacity.value.value()},
         {"link", name_of(p.link.kind)},
         {"host_to_device_bytes_per_second", p.link.host_to_device.value.value()},
         {"device_to_host_bytes_per_second", p.link.device_to_host.value.value()},
         {"both_directions_bytes_per_second", p.link.both_directions.value.value()},
         {"gpus_per_host", gpus_per_host(p.host).value()},
         {"host_memory_per_gpu_bytes", memory_per_gpu(p.host).value()}});
  return dump(json);
}

/// A table of all figures: value, origin, source.
std::string render_profile_text(const HardwareProfile& profile) {
  TextVisitor visitor;
  visit_profile(profile, visitor);
  return fmt::format("{}: {}\n{}\n{}; {} GPUs a host, {} of its memory for each\n", profile.id,
                     profile.name, visitor.rows.text(0), visitor.counts.text(),
                     readable(gpus_per_host(profile.host)), readable(memory_per_gpu(profile.host)));
}

std::string render_profile_json(const HardwareProfile& profile) {
  JsonVisitor visitor;
  visitor.root["schema"] = kSchema;
  visit_profile(profile, visitor);
  return dump(visitor.root);
}

std::string render_findings_text(const HardwareProfile& profile,
                                 const std::vector<Finding>& findings) {
  if (findings.empty()) return fmt::format("{}: nothing odd\n", profile.id);
  std::string text;
  for (const Finding& finding : findings)
    text += fmt::format("{}: {}: {}: {}\n", profile.id, name_of(finding.severity), finding.key,
                        finding.text);
  return text;
}

std::string render_findings_json(const HardwareProfile& profile,
                                 const std::vector<Finding>& findings) {
  Json json{{"schema", kSchema}, {"id", profile.id}, {"findings", Json::array()}};
  for (const Finding& finding : findings)
    json["findings"].push_back(
        {{"severity", name_of(finding.severity)}, {"key", finding.key}, {"text", finding.text}});
  return dump(json);
}

}  // namespace

ProfileSearchPath hw_search_path(const char* environment, const std::string& executable) {
  ProfileSearchPath search;
  std::string_view rest = environment == nullptr ? "" : environment;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) search.folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  // bin/spillway is installed beside share/, and the build tree has a link at the same place.
  const auto folder = std::filesystem::path(executable).parent_path().parent_path();
  search.folders.push_back((folder / "share/spillway/hw_profiles").string());
  return search;
}

HwResult hw_list(const ProfileSearchPath& search, bool json) {
  HwResult result;
  std::vector<HardwareProfile> profiles;
  for (const ProfileEntry& entry : list_profiles(search)) {
    Result<HardwareProfile> profile = find_profile(entry.id, search);
    if (profile)
      profiles.push_back(std::move(profile).value());
    else
      result.err += to_text(profile.error()) + "\n";
  }
  if (profiles.empty()) {
    result.exit_code = kWrongInput;
    if (result.err.empty())
      result.err =
          fmt::format("error: no hardware profile lies in {}\n",
                      search.folders.empty() ? "any known folder"
                                             : fmt::format("{}", fmt::join(search.folders, ", ")));
    return result;
  }
  result.out = json ? render_profile_list_json(profiles) : render_profile_list(profiles);
  return result;
}

HwResult hw_show(std::string_view id_or_path, const ProfileSearchPath& search, bool json) {
  const Result<HardwareProfile> profile = find_profile(id_or_path, search);
  if (!profile) return failed(profile.error());
  return {kDone, json ? render_profile_json(*profile) : render_profile_text(*profile), ""};
}

HwResult hw_check(std::string_view id_or_path, const ProfileSearchPath& search, bool json) {
  const Result<HardwareProfile> profile = find_profile(id_or_path, search);
  if (!profile) return failed(profile.error());
  const std::vector<Finding> findings = check_profile(*profile);
  return {
      has_error(findings) ? kAnswerIsNo : kDone,
      json ? render_findings_json(*profile, findings) : render_findings_text(*profile, findings),
      ""};
}

}  // namespace spillway
