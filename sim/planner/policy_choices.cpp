#include "sim/planner/policy_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "model/base/format.h"

namespace spillway {
namespace {

std::optional<Choice> parse_choice(std::string_view text) {
  for (const Choice choice : {Choice::kKeep, Choice::kOffload, Choice::kRecompute})
    if (text == name_of(choice)) return choice;
  return std::nullopt;
}

/// What MaxText calls these, and another name in the place of a choice.
std::string advice_for(std::string_view text) {
  if (text == "remat") return "did you mean recompute?";
  if (text == "device") return "did you mean keep?";
  if (text.find('=') != text.npos) return "each name has a --set of its own";
  return "keep, offload or recompute";
}

bool carries(const Handle& handle, const std::string& name) {
  return handle.name == name || std::ranges::find(handle.aliases, name) != handle.aliases.end();
}

std::string names_that_can_be_set(const std::vector<Handle>& handles, const NameList& names) {
  std::vector<std::string> known;
  const auto add = [&known](const std::string& name) {
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  };
  for (const Handle& handle : handles) {
    add(handle.name);
    for (const std::string& alias : handle.aliases) add(alias);
  }
  for (const CheckpointName& name : names.names) add(name.name);
  std::string text;
  for (const std::string& name : known) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What the user asked for, one choice a wish, turned into one choice a handle.
class PolicyMaker {
 public:
  PolicyMaker(const std::vector<NameChoice>& wishes, const std::vector<Handle>& handles)
      : wishes_(wishes), handles_(handles) {}

  Policy make(const std::vector<Choice>& asked) {
    Policy policy = compiled_policy(handles_);
    for (std::size_t k = 0; k < handles_.size(); ++k) {
      const std::optional<Choice> choice = choice_for(handles_[k], asked);
      if (!choice || *choice == policy[k]) continue;
      if (const std::string why = why_not(handles_[k], *choice); !why.empty())
        add_finding("stays-as-compiled", fmt::format("{}={} has no effect here: {}",
                                                     handles_[k].name, name_of(*choice), why));
      else
        policy[k] = *choice;
    }
    return policy;
  }

  std::vector<Diagnostic> findings;

 private:
  static std::string why_not(const Handle& handle, Choice choice) {
    if (choice == Choice::kRecompute) return handle.saved_because;
    if (!handle.fixed_because.empty()) return handle.fixed_because;
    return choice == Choice::kOffload ? handle.device_only_because : "";
  }

  /// Keep and offload win over recompute, and so does a name that is not asked about, since the
  /// program saves it.
  std::optional<Choice> choice_for(const Handle& handle, const std::vector<Choice>& asked) {
    std::optional<Choice> saved;
    std::size_t recomputed = 0;
    for (std::size_t w = 0; w < wishes_.size(); ++w) {
      if (!carries(handle, wishes_[w].name)) continue;
      if (asked[w] == Choice::kRecompute) {
        ++recomputed;
      } else if (!saved) {
        saved = asked[w];
      } else if (*saved != asked[w]) {
        add_finding("names-disagree", fmt::format("{} is the same value as another name that is to "
                                                  "be {}; the first one counts",
                                                  wishes_[w].name, name_of(*saved)));
      }
    }
    if (saved || recomputed == 0) return saved;
    if (recomputed == 1 + handle.aliases.size()) return Choice::kRecompute;
    add_finding("saved-by-another-name",
                fmt::format("{} stays saved: it has several names, and jax.checkpoint recomputes "
                            "it only when none of them is saved",
                            joined(handle)));
    return std::nullopt;
  }

  static std::string joined(const Handle& handle) {
    std::string text = handle.name;
    for (const std::string& alias : handle.aliases) text += "=" + alias;
    return text;
  }

  void add_finding(std::string code, std::string what) {
    if (seen_.insert(what).second)
      findings.push_back({std::move(code), Severity::kWarning, std::move(what), "", ""});
  }

  const std::vector<NameChoice>& wishes_;
  const std::vector<Handle>& handles_;
  std::set<std::string> seen_;
};

/// Whether it is of that name, or of some layers of it.
bool is_of(const Handle& handle, const std::string& name) {
  return carries(handle, name) || handle.name.starts_with(name + "@");
}

Diagnostic without_effect(const std::string& name, const std::vector<Handle>& handles) {
  const bool is_split =
      std::ranges::any_of(handles, [&name](const Handle& handle) { return is_of(handle, name); });
  if (is_split)
    return {"name-without-effect", Severity::kInfo,
            name + " changes nothing: other --set have all of its layers, with @", "",
            "leave it out, or give fewer layers with @"};
  return {"name-without-effect", Severity::kInfo,
          name + " changes nothing: the program saves no value of that name",
          "the backward pass does not need it, or the policy it was compiled with recomputes it",
          "to have it as a choice, compile the step with everything saved"};
}

/// Names of another program: nothing that is set can matter.
std::optional<Diagnostic> find_foreign_names(const std::vector<Handle>& handles,
                                             const NameList& names) {
  for (const CheckpointName& name : names.names)
    if (std::ranges::any_of(handles, [&name](const Handle& h) { return is_of(h, name.name); }))
      return std::nullopt;
  return Diagnostic{"foreign-names", Severity::kWarning,
                    "no name of the sidecar fits a residual of this program: it is another "
                    "program's, or what it names is not saved",
                    "what is set changes nothing",
                    "give the sidecar of this very step, compiled with everything saved"};
}

/// The error of a name that means nothing here, or the finding of one that changes nothing.
std::optional<Error> check_names(const std::vector<NameChoice>& wishes,
                                 const std::vector<Handle>& handles, const NameList& names,
                                 std::vector<Diagnostic>& findings) {
  std::set<std::string> seen;
  const auto foreign = find_foreign_names(handles, names);
  bool is_foreign = false;
  for (const NameChoice& wish : wishes) {
    if (!seen.insert(wish.name).second)
      return usage_error(
          "--set " + wish.name + " stands there twice",
          "choices to compare have commas between: --set " + wish.name + "=keep,offload");
    const auto has_it = [&wish](const Handle& handle) { return carries(handle, wish.name); };
    if (std::ranges::any_of(handles, has_it)) continue;
    if (std::ranges::find(names.names, wish.name, &CheckpointName::name) == names.names.end())
      return usage_error("no name " + spillway::quoted(wish.name) + " in this program",
                         "it has " + names_that_can_be_set(handles, names));
    if (!foreign) findings.push_back(without_effect(wish.name, handles));
    is_foreign |= foreign.has_value();
  }
  if (is_foreign) findings.push_back(*foreign);
  return std::nullopt;
}

std::optional<std::uint32_t> parse_layer(std::string_view text) {
  std::uint32_t layer = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), layer);
  constexpr std::uint32_t kMost = 100'000;
  const bool is_number = failed == std::errc() && end == text.data() + text.size();
  return is_number && layer < kMost ? std::optional(layer) : std::nullopt;
}

/// "3" or "0-15"; empty for what is neither.
std::vector<std::uint32_t> parse_layers(std::string_view text) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const auto first = parse_layer(text.substr(0, dash));
  const auto last = dash == text.size() ? first : parse_layer(text.substr(dash + 1));
  if (!first || !last || *last < *first) return {};
  std::vector<std::uint32_t> layers;
  for (std::uint32_t layer = *first; layer <= *last; ++layer) layers.push_back(layer);
  return layers;
}

}  // namespace

std::vector<LayerGroup> groups_of(const std::vector<NameChoice>& wishes) {
  std::vector<LayerGroup> groups;
  for (const NameChoice& wish : wishes)
    if (wish.group) groups.push_back(*wish.group);
  return groups;
}

std::optional<Error> check_layers(const std::vector<NameChoice>& wishes,
                                  const std::vector<Handle>& handles, const UnrolledTable& table) {
  for (const NameChoice& wish : wishes) {
    const auto has_it = [&wish](const Handle& handle) { return carries(handle, wish.name); };
    if (!wish.group || std::ranges::any_of(handles, has_it)) continue;
    if (table.residuals.empty())
      return usage_error("--set " + wish.name +
                             ": this program's layers are scanned, and a name has "
                             "one choice for all of them",
                         "without the @; plan says what a split scan would bring");
    const std::size_t layers = table.layers.size();
    if (wish.group->layers.back() >= layers)
      return usage_error(fmt::format("--set {}: the layers are 0 to {}", wish.name, layers - 1));
    const auto is_base = [&wish](const Handle& handle) { return is_of(handle, wish.group->name); };
    if (std::ranges::any_of(handles, is_base))
      return usage_error("--set " + wish.name + ": another --set has some of these layers",
                         "give each layer once");
  }
  return std::nullopt;
}

Result<NameChoice> parse_name_choice(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return usage_error("--set " + spillway::quoted(text) + " is not NAME=CHOICE",
                       "for example --set query_proj=offload");
  NameChoice result{text.substr(0, equals), {}};
  if (const std::size_t at = result.name.find('@'); at != std::string::npos) {
    const auto layers = parse_layers(std::string_view(result.name).substr(at + 1));
    if (layers.empty() || at == 0)
      return usage_error("--set " + spillway::quoted(result.name) + " has no layers behind the @",
                         "for example --set query_proj@3=offload or query_proj@0-15=offload");
    result.group = LayerGroup{result.name.substr(0, at), layers};
    result.name = result.group->name + layers_text(layers);
  }
  std::string_view rest = std::string_view(text).substr(equals + 1);
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto choice = parse_choice(rest.substr(0, comma));
    if (!choice)
      return usage_error("--set " + result.name + ": " +
                             spillway::quoted(std::string(rest.substr(0, comma))) + " is no choice",
                         advice_for(rest.substr(0, comma)));
    result.choices.push_back(*choice);
    if (comma == rest.size()) return result;
    rest.remove_prefix(comma + 1);
  }
}

Result<PolicyCases> combine(const std::vector<NameChoice>& wishes,
                            const std::vector<Handle>& handles, const NameList& names,
                            std::size_t most) {
  PolicyCases result;
  if (const auto wrong = check_names(wishes, handles, names, result.findings)) return *wrong;
  std::size_t count = 1;
  for (const NameChoice& wish : wishes) {
    count *= wish.choices.size();
    if (count > most)
      return usage_error(fmt::format("these are more than {} cases", most), "give fewer choices");
  }
  PolicyMaker maker(wishes, handles);
  for (std::size_t number = 0; number < count; ++number) {
    std::vector<Choice> asked(wishes.size());
    std::size_t rest = number;
    for (std::size_t w = wishes.size(); w-- > 0; rest /= wishes[w].choices.size())
      asked[w] = wishes[w].choices[rest % wishes[w].choices.size()];
    result.policies.push_back(maker.make(asked));
  }
  result.findings.insert(result.findings.end(), maker.findings.begin(), maker.findings.end());
  return result;
}

}  // namespace spillway
