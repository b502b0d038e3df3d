#include "model/hardware/read_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "model/hardware/profile_fields.h"
#include "model/hardware/strict_map.h"
#include "model/hardware/units_text.h"
#include "model/hardware/yaml_document.h"

namespace spillway {
namespace {

/// What a figure may be. Far from any machine, and such that whatever is computed with figures can
/// be computed: rates as whole numbers a second, times in picoseconds, products of counts.
template <typename Q>
struct Bounds;
template <>
struct Bounds<Bytes> {
  static constexpr Bytes least{1}, most{std::int64_t{1} << 53};  // parse_units reads no more
};
template <>
struct Bounds<BytesPerSecond> {
  static constexpr BytesPerSecond least{1}, most{1e15};
};
template <>
struct Bounds<FlopsPerSecond> {
  static constexpr FlopsPerSecond least{1}, most{1e24};
};
template <>
struct Bounds<Hertz> {
  static constexpr Hertz least{1}, most{1e15};
};
template <>
struct Bounds<Seconds> {  // a copy's start-up or a gap may be nothing
  static constexpr Seconds least{0}, most{3600};
};
template <>
struct Bounds<Factor> {
  static constexpr Factor least{1e-6}, most{1e6};
};
template <>
struct Bounds<Count> {
  static constexpr Count least{1}, most{1'000'000};
};

/// Reads every field that visit_profile names.
class ProfileReader {
 public:
  ProfileReader(const YamlDocument& document, YamlProblems& problems) : problems_(problems) {
    open_.emplace_back(document.root, TextPosition{}, "", problems);
    read_schema();
  }

  template <typename VisitInside>
  void section(std::string_view key, VisitInside visit_inside) {
    const auto value = map().require(key, fmt::format("'{}:' with its fields indented below", key));
    if (!value) return;
    open_.emplace_back(*value->node, value->key_at, std::string(key), problems_);
    visit_inside();
    map().finish();
    open_.pop_back();
  }

  void field(std::string_view key, std::string& out) {
    if (const auto value = map().require_scalar(key, fmt::format("{}: \"NVIDIA GB200\"", key)))
      out = value->node->scalar;
  }

  void field(std::string_view key, LinkKind& out) { choice(map(), key, kLinkKinds, out); }
  void field(std::string_view key, FabricKind& out) { choice(map(), key, kFabricKinds, out); }

  template <typename Q>
  void field(std::string_view key, Figure<Q>& out) {
    if (const auto value = map().require(key, example<Q>(key))) read_figure(key, *value, out);
  }

  template <typename Q>
  void field(std::string_view key, std::optional<Figure<Q>>& out) {
    if (const auto value = map().find(key)) read_figure(key, *value, out.emplace());
  }

  template <typename Q>
  void table(std::string_view key, FigureTable<Q>& out, std::span<const std::string_view> types) {
    const auto value =
        map().require(key, fmt::format("{}: {{{}}}", key, example<Q>(types.front())));
    if (!value) return;
    open_.emplace_back(*value->node, value->key_at, std::string(key), problems_);
    for (const std::string_view type : types) {
      const bool required = type == types.front();
      const auto figure = required ? map().require(type, example<Q>(type)) : map().find(type);
      if (figure) read_figure(type, *figure, out[std::string(type)]);
    }
    map().finish();
    open_.pop_back();
  }

  /// A table that may be left out, and so may each of its types.
  template <typename Entry>
  void optional_table(std::string_view key, std::map<std::string, Entry, std::less<>>& out,
                      std::span<const std::string_view> types) {
    const auto value = map().find(key);
    if (!value) return;
    open_.emplace_back(*value->node, value->key_at, std::string(key), problems_);
    for (const std::string_view type : types)
      if (const auto entry = map().find(type)) read_figure(type, *entry, out[std::string(type)]);
    map().finish();
    open_.pop_back();
  }

  void field(std::string_view key, CollectiveCosts& out) {
    const auto value = map().require(key, "'all_gather:' with origin, source and fits");
    if (!value) return;
    StrictMap costs(*value->node, value->key_at, std::string(key), problems_);
    read_origin(costs, out.origin);
    if (const auto fits = costs.require("fits", fit_example())) read_fits(*fits, out.fits);
    costs.finish();
  }

  /// No sustained rate may exceed what the wires carry.
  void check_caps(const HardwareProfile& profile) {
    const auto check_cap = [&](std::string_view name, const Figure<BytesPerSecond>& rate,
                               std::string_view cap_name, const Figure<BytesPerSecond>& cap) {
      const auto at = places_.find(&rate);
      if (at == places_.end() || !places_.contains(&cap) || rate.value <= cap.value) return;
      problems_.add(at->second,
                    fmt::format("'{}' exceeds '{}', {}", name, cap_name, to_units_text(cap.value)),
                    "a sustained rate is below what the wires carry");
    };
    const HostLink& link = profile.link;
    check_cap("host_to_device", link.host_to_device, "cap_per_direction", link.cap_per_direction);
    check_cap("device_to_host", link.device_to_host, "cap_per_direction", link.cap_per_direction);
    const ScaleOut& network = profile.scale_out;
    check_cap("nic_bandwidth", network.nic_bandwidth, "nic_cap", network.nic_cap);
  }

  /// A matrix product beside a collective takes the SMs that the collective leaves.
  void check_factors(const HardwareProfile& profile) {
    const Figure<Factor>& beside = profile.kernels.gemm_beside_collective;
    const auto at = places_.find(&beside);
    if (at != places_.end() && beside.value < Factor(1))
      problems_.add(at->second, "'gemm_beside_collective' is below 1",
                    "how many times as long as alone, for example \"1.6 x\"");
  }

  void finish() { map().finish(); }

 private:
  StrictMap& map() { return open_.back(); }

  void read_schema() {
    const auto value = map().require_scalar("schema", fmt::format("schema: {}", kProfileSchema));
    if (value && value->node->scalar != kProfileSchema)
      problems_.add(value->node->at,
                    fmt::format("the schema '{}' is not known", value->node->scalar),
                    fmt::format("this version reads {}", kProfileSchema));
  }

  template <typename Choice, std::size_t kSize>
  void choice(StrictMap& from, std::string_view key, const Choice (&all)[kSize], Choice& out) {
    std::vector<std::string_view> names;
    for (const Choice candidate : all) names.push_back(name_of(candidate));
    const auto value = from.require_scalar(key, fmt::format("{}: {}", key, names.front()));
    if (!value) return;
    const auto found = std::ranges::find(names, value->node->scalar);
    if (found != names.end())
      out = all[static_cast<std::size_t>(found - names.begin())];
    else
      problems_.add(value->node->at,
                    fmt::format("{} is '{}'", from.describe(key), value->node->scalar),
                    fmt::format("one of {}", fmt::join(names, ", ")));
  }

  template <typename Q>
  static std::string example(std::string_view key) {
    return fmt::format("{}: {{value: \"{}\", origin: measured, source: \"who measured it, how\"}}",
                       key, example_of<Q>());
  }

  static std::string fit_example() {
    return "fits: [{gpus: 8, latency: \"20 us\", bus_bandwidth: \"319 GB/s\"}]";
  }

  template <typename Q>
  void read_figure(std::string_view key, const StrictMap::Value& value, Figure<Q>& out) {
    if (value.node->kind != YamlNode::Kind::kMapping) {
      problems_.add(value.node->at,
                    fmt::format("{} needs a value and its origin", map().describe(key)),
                    fmt::format("for example {}", example<Q>(key)));
      return;
    }
    StrictMap figure(*value.node, value.key_at, std::string(key), problems_);
    read_quantity(figure, "value", key, out.value);
    read_origin(figure, out.origin);
    figure.finish();
    if (const auto number = figure.find("value")) places_.emplace(&out, number->node->at);
  }

  void read_figure(std::string_view key, const StrictMap::Value& value, GemmShape& out) {
    StrictMap shape(*value.node, value.key_at, std::string(key), problems_);
    read_quantity(shape, "overhead", "overhead", out.overhead);
    read_quantity(shape, "depth", "depth", out.depth);
    read_quantity(shape, "operands", "operands", out.operands);
    read_quantity(shape, "result", "result", out.result);
    read_origin(shape, out.origin);
    shape.finish();
  }

  /// A scalar with its unit. `name` is what the message calls it.
  template <typename Q>
  void read_quantity(StrictMap& from, std::string_view key, std::string_view name, Q& out) {
    const auto value = from.require_scalar(key, fmt::format("{}: \"{}\"", key, example_of<Q>()));
    if (!value) return;
    const Result<Q> parsed = parse_units<Q>(value->node->scalar);
    if (!parsed) {
      problems_.add(value->node->at, fmt::format("'{}' {}", name, parsed.error().text),
                    parsed.error().advice);
    } else if (*parsed < Q(0)) {
      problems_.add(value->node->at, fmt::format("'{}' is negative", name),
                    fmt::format("for example \"{}\"", example_of<Q>()));
    } else if (*parsed == Q(0) && Bounds<Q>::least > Q(0)) {
      problems_.add(value->node->at, fmt::format("'{}' is zero", name),
                    fmt::format("for example \"{}\"", example_of<Q>()));
    } else if (*parsed < Bounds<Q>::least || *parsed > Bounds<Q>::most) {
      problems_.add(value->node->at,
                    fmt::format("'{}' is outside {} to {}", name, to_units_text(Bounds<Q>::least),
                                to_units_text(Bounds<Q>::most)),
                    fmt::format("for example \"{}\"", example_of<Q>()));
    } else {
      out = *parsed;
    }
  }

  void read_origin(StrictMap& from, Origin& out) {
    choice(from, "origin", kOriginKinds, out.kind);
    if (const auto source = from.require_scalar("source", "source: \"who measured it, how\""))
      out.source = source->node->scalar;
  }

  void read_fits(const StrictMap::Value& value, std::vector<CollectiveFit>& out) {
    if (value.node->kind != YamlNode::Kind::kSequence || value.node->items.empty()) {
      problems_.add(value.key_at, "'fits' must be a list with at least one group size",
                    fmt::format("for example {}", fit_example()));
      return;
    }
    for (const YamlNode& item : value.node->items) {
      StrictMap row(item, item.at, "fits", problems_);
      CollectiveFit& fit = out.emplace_back();
      read_quantity(row, "gpus", "gpus", fit.gpus);
      read_quantity(row, "latency", "latency", fit.latency);
      read_quantity(row, "bus_bandwidth", "bus_bandwidth", fit.bus_bandwidth);
      if (row.find("pipeline")) read_quantity(row, "pipeline", "pipeline", fit.pipeline);
      if (row.find("slow_bandwidth") || row.find("slow_up_to")) {
        FewChannels& few = fit.few_channels.emplace();
        read_quantity(row, "slow_bandwidth", "slow_bandwidth", few.bandwidth);
        read_quantity(row, "slow_up_to", "slow_up_to", few.up_to);
      }
      row.finish();
      if (out.size() > 1 && fit.gpus <= out[out.size() - 2].gpus && fit.gpus > Count(0))
        problems_.add(item.at, "the group sizes of 'fits' must ascend", "sort the rows by 'gpus'");
    }
  }

  YamlProblems& problems_;
  std::vector<StrictMap> open_;
  std::map<const void*, TextPosition> places_;  // of the values of figures
};

Result<HardwareProfile> to_profile(const YamlDocument& document) {
  YamlProblems problems(document);
  ProfileReader reader(document, problems);
  HardwareProfile profile;
  visit_profile(profile, reader);
  reader.finish();
  reader.check_caps(profile);
  reader.check_factors(profile);
  if (std::optional<Error> error = problems.first()) return *std::move(error);
  return profile;
}

}  // namespace

Result<HardwareProfile> parse_profile(std::string text, std::string path) {
  const Result<YamlDocument> document = parse_yaml(std::move(text), std::move(path));
  if (!document) return document.error();
  return to_profile(*document);
}

Result<HardwareProfile> read_profile(const std::string& path) {
  const Result<YamlDocument> document = read_yaml(path);
  if (!document) return document.error();
  return to_profile(*document);
}

}  // namespace spillway
