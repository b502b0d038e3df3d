#include "sim/planner/baselines.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

namespace spillway {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kLayerInput = "decoder_layer_input";
constexpr std::string_view kQkv[] = {"query_proj", "key_proj", "value_proj", "kv_proj", "qkv_proj"};
constexpr std::string_view kQkvSplit[] = {"query_proj", "key_proj", "value_proj", "kv_proj"};
constexpr std::string_view kOutProj[] = {"out_proj"};
constexpr std::string_view kNotMlp[] = {"query_proj", "key_proj", "value_proj",
                                        "kv_proj",    "qkv_proj", "out_proj"};
constexpr std::string_view kNotMlpContext[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                               "qkv_proj",   "out_proj", "context"};
constexpr std::string_view kNotMlpWi[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                          "qkv_proj",   "out_proj", "mlpwo"};
constexpr std::string_view kMinimal[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                         "qkv_proj",   "out_proj", "mlpwi",      "mlpwi_0",
                                         "mlpwi_1",    "mlpwo"};
constexpr std::string_view kMinimalContext[] = {"query_proj", "key_proj", "value_proj", "kv_proj",
                                                "qkv_proj",   "out_proj", "mlpwi",      "mlpwi_0",
                                                "mlpwi_1",    "mlpwo",    "context"};

/// MaxText's presets of remat_policy: the names that each saves, and where; all others are
/// recomputed but the layer's input, which is an argument of what is checkpointed.
struct Preset {
  const char* name;
  Names names;
  Choice place;
};
constexpr Preset kPresets[] = {
    {"full", {}, Choice::kKeep},
    {"save_out_proj", kOutProj, Choice::kKeep},
    {"save_qkv_proj", kQkv, Choice::kKeep},
    {"save_dot_except_mlp", kNotMlp, Choice::kKeep},
    {"save_dot_with_context_except_mlp", kNotMlpContext, Choice::kKeep},
    {"save_dot_except_mlpwi", kNotMlpWi, Choice::kKeep},
    {"minimal", kMinimal, Choice::kKeep},
    {"minimal_with_context", kMinimalContext, Choice::kKeep},
    {"qkv_proj_offloaded", kQkvSplit, Choice::kOffload},
    {"minimal_offloaded", kMinimal, Choice::kOffload},
};

bool carries(const Handle& handle, Names names) {
  const auto is_listed = [names](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  return is_listed(handle.name) || std::ranges::any_of(handle.aliases, is_listed);
}

bool can(const Handle& handle, Choice choice) {
  const std::vector<Choice> choices = choices_of(handle);
  return std::ranges::find(choices, choice) != choices.end();
}

/// The first of these that a handle may become; as it must be otherwise.
Choice first_of(const Handle& handle, std::initializer_list<Choice> wishes) {
  for (const Choice choice : wishes)
    if (can(handle, choice)) return choice;
  return choices_of(handle).front();
}

class Proposals {
 public:
  explicit Proposals(const BaselineFacts& facts) : facts_(facts), handles_(facts.handles) {}

  /// Every name, as `wish` has it.
  template <typename Wish>
  Policy each(const Wish& wish) const {
    Policy policy = allowed_policy(handles_);
    for (std::size_t k = 0; k < handles_.size(); ++k)
      if (is_name(handles_[k])) policy[k] = wish(k);
    return policy;
  }
  Policy all(std::initializer_list<Choice> wishes) const {
    return each([&](std::size_t k) { return first_of(handles_[k], wishes); });
  }
  Policy preset(const Preset& preset) const {
    return each([&](std::size_t k) {
      const bool is_input = handles_[k].name == kLayerInput;
      if (is_input) return first_of(handles_[k], {Choice::kKeep});
      return carries(handles_[k], preset.names)
                 ? first_of(handles_[k], {preset.place, Choice::kKeep})
                 : first_of(handles_[k], {Choice::kRecompute});
    });
  }
  /// Offloads whose copies last no longer than what runs beside them.
  bool hides(Seconds out, Seconds in) const {
    return out <= facts_.forward && in <= facts_.backward;
  }
  Policy what_hides_alone() const {
    return each([&](std::size_t k) {
      return hides(facts_.of[k].out, facts_.of[k].in)
                 ? first_of(handles_[k], {Choice::kOffload})
                 : first_of(handles_[k], {Choice::kRecompute, Choice::kKeep});
    });
  }
  Policy what_hides_together() const;
  std::vector<Policy> chain() const;

 private:
  /// Names by what recomputing costs for the memory it spares, dearest first.
  std::vector<std::size_t> by_intensity() const;

  const BaselineFacts& facts_;
  const std::vector<Handle>& handles_;
};

std::vector<std::size_t> Proposals::by_intensity() const {
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < handles_.size(); ++k)
    if (is_name(handles_[k])) order.push_back(k);
  std::ranges::stable_sort(order, std::ranges::greater(), [this](std::size_t k) {
    return facts_.of[k].again.value() /
           std::max(1.0, static_cast<double>(handles_[k].bytes.value()));
  });
  return order;
}

Policy Proposals::what_hides_together() const {
  Policy policy = all({Choice::kRecompute, Choice::kKeep});
  Seconds out(0), in(0);
  for (const std::size_t k : by_intensity()) {
    const HandleFacts& facts = facts_.of[k];
    if (!can(handles_[k], Choice::kOffload) || !hides(out + facts.out, in + facts.in)) continue;
    policy[k] = Choice::kOffload;
    out += facts.out;
    in += facts.in;
  }
  return policy;
}

/// As MaxText's estimator goes: from everything recomputed to everything offloaded to everything
/// kept, name by name.
std::vector<Policy> Proposals::chain() const {
  std::vector<Policy> chain = {all({Choice::kRecompute, Choice::kOffload, Choice::kKeep})};
  for (const Choice better : {Choice::kOffload, Choice::kKeep})
    for (const std::size_t k : by_intensity()) {
      Policy next = chain.back();
      next[k] = first_of(handles_[k], {better, next[k]});
      if (next != chain.back()) chain.push_back(std::move(next));
    }
  return chain;
}

bool speaks_maxtext(const std::vector<Handle>& handles) {
  return std::ranges::count_if(
             handles, [](const Handle& handle) { return carries(handle, kMinimalContext); }) >= 2;
}

}  // namespace

std::vector<Baseline> baselines(const BaselineFacts& facts) {
  const Proposals propose(facts);
  std::vector<Baseline> found = {
      {"as compiled", {compiled_policy(facts.handles)}},
      {"keep all", {propose.all({Choice::kKeep})}},
      {"offload all", {propose.all({Choice::kOffload})}},
  };
  const bool recomputes = std::ranges::any_of(
      facts.handles, [](const Handle& handle) { return can(handle, Choice::kRecompute); });
  if (!recomputes) return found;
  found.push_back({"recompute all", {propose.all({Choice::kRecompute})}});
  const bool knows_copies = std::ranges::any_of(
      facts.of, [](const HandleFacts& handle) { return handle.out > Seconds(0); });
  if (knows_copies) {
    found.push_back({"offload what hides, recompute the rest", {propose.what_hides_together()}});
    found.push_back({"offload what hides alone", {propose.what_hides_alone()}});
  }
  found.push_back({"MaxText's chain", propose.chain()});
  if (speaks_maxtext(facts.handles))
    for (const Preset& preset : kPresets)
      found.push_back({std::string("MaxText ") + preset.name, {propose.preset(preset)}});
  return found;
}

}  // namespace spillway
