#include "model/plan/not_done.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace spillway {
namespace {

Choice choice_of(Placement placement) {
  return placement == Placement::kDevice ? Choice::kKeep : Choice::kOffload;
}

/// Whether another name stands on the same line at a value of the same shape: source lines then do
/// not tell whose value it is.
bool has_twin(const NameList& list, const std::vector<std::string>& names) {
  const auto is_ours = [&names](const CheckpointName& name) {
    return std::ranges::find(names, name.name) != names.end();
  };
  for (const CheckpointName& ours : list.names) {
    if (!is_ours(ours)) continue;
    for (const CheckpointName& other : list.names)
      if (!is_ours(other) && other.source == ours.source && other.shape == ours.shape &&
          other.layers == ours.layers)
        return true;
  }
  return false;
}

bool is_sure(NameEvidence evidence, const NameList& list, const std::vector<std::string>& names) {
  if (names.empty() || evidence == NameEvidence::kGuess) return false;
  return evidence != NameEvidence::kSource || !has_twin(list, names);
}

/// The order of names tells nothing where some of the values are kept and some offloaded: the loop
/// may carry either kind first (examples/jax with mlpwi_0 kept and mlpwi_1 offloaded).
void doubt_mixed_orders(const std::vector<NameEvidence>& evidence, std::vector<SavedValue>& saved) {
  std::vector<std::size_t> doubtful;
  for (std::size_t a = 0; a < saved.size(); ++a)
    for (std::size_t b = 0; b < saved.size(); ++b)
      if (evidence[a] == NameEvidence::kOrder && evidence[b] == NameEvidence::kOrder &&
          saved[a].shape == saved[b].shape && saved[a].layers == saved[b].layers &&
          saved[a].placement != saved[b].placement)
        doubtful.push_back(a);
  for (const std::size_t k : doubtful) saved[k].is_sure = false;
}

/// Pairs planned and found until each is used up.
class Pairing {
 public:
  Pairing(const std::vector<PlannedResidual>& planned, const std::vector<SavedValue>& found)
      : planned_(planned), found_(found), partner_(planned.size()), taken_(found.size()) {}

  /// Pairs what is alike and left over; of a plan's residuals only those that `applies` to.
  template <typename Applies, typename Alike>
  void pair(const Applies& applies, const Alike& alike) {
    for (std::size_t p = 0; p < planned_.size(); ++p) {
      if (partner_[p] || !applies(planned_[p])) continue;
      for (std::size_t f = 0; f < found_.size() && !partner_[p]; ++f) {
        if (taken_[f] || !alike(planned_[p], found_[f])) continue;
        partner_[p] = f;
        taken_[f] = 1;
      }
    }
  }

  std::vector<NotDone> differences() const {
    std::vector<NotDone> result;
    for (std::size_t p = 0; p < planned_.size(); ++p) add_difference(p, result);
    for (std::size_t f = 0; f < found_.size(); ++f)
      if (!taken_[f]) {
        const SavedValue& value = found_[f];
        result.push_back({label_of(value.names, value.shape), value.shape, value.layers,
                          value.bytes, std::nullopt, choice_of(value.placement), Bytes(0)});
      }
    return result;
  }

 private:
  static std::string label_of(const std::vector<std::string>& names, const std::string& shape) {
    return names.empty() ? shape : fmt::format("{}", fmt::join(names, "="));
  }

  void add_difference(std::size_t p, std::vector<NotDone>& result) const {
    const PlannedResidual& planned = planned_[p];
    const SavedValue* const value = partner_[p] ? &found_[*partner_[p]] : nullptr;
    const Choice found = value ? choice_of(value->placement) : Choice::kRecompute;
    const Bytes growth = value && planned.choice == found ? value->bytes - planned.bytes : Bytes(0);
    if (planned.choice == found && growth == Bytes(0)) return;
    result.push_back({label_of(planned.names, planned.shape), planned.shape,
                      value ? value->layers : planned.layers, value ? value->bytes : planned.bytes,
                      planned.choice, found, growth});
  }

  const std::vector<PlannedResidual>& planned_;
  const std::vector<SavedValue>& found_;
  std::vector<std::optional<std::size_t>> partner_;  ///< of each planned one, in found_
  std::vector<char> taken_;
};

}  // namespace

std::vector<SavedValue> list_saved(const ResidualTable& scanned, const UnrolledTable& unrolled,
                                   const NameList& names) {
  std::vector<SavedValue> saved;
  std::vector<NameEvidence> evidence;
  for (const Residual& r : scanned.residuals) evidence.push_back(r.evidence);
  for (const UnrolledResidual& r : unrolled.residuals) evidence.push_back(r.evidence);
  for (const Residual& r : scanned.residuals)
    saved.push_back({r.names, is_sure(r.evidence, names, r.names), to_string(r.slice), r.layers,
                     r.total_bytes, r.placement});
  for (const UnrolledResidual& r : unrolled.residuals)
    saved.push_back({r.names, is_sure(r.evidence, names, r.names), to_string(r.shape),
                     static_cast<std::int64_t>(r.layers.size()), r.total_bytes(), r.placement});
  doubt_mixed_orders(evidence, saved);
  return saved;
}

std::vector<NotDone> find_not_done(const std::vector<PlannedResidual>& planned,
                                   const std::vector<SavedValue>& found) {
  const auto any = [](const PlannedResidual&) { return true; };
  const auto saved = [](const PlannedResidual& p) { return p.choice != Choice::kRecompute; };
  const auto same_name = [](const PlannedResidual& p, const SavedValue& f) {
    return f.is_sure && p.names == f.names;
  };
  const auto same_shape = [](const PlannedResidual& p, const SavedValue& f) {
    return p.shape == f.shape && p.layers == f.layers;
  };
  const auto same_place = [](const PlannedResidual& p, const SavedValue& f) {
    return p.choice == choice_of(f.placement);
  };
  const auto both = [](const auto& a, const auto& b) {
    return [a, b](const PlannedResidual& p, const SavedValue& f) { return a(p, f) && b(p, f); };
  };
  // A value that is surely another's stays out of the pairing by shape.
  const auto alike = [&](const PlannedResidual& p, const SavedValue& f) {
    return same_shape(p, f) && (!f.is_sure || p.names.empty());
  };
  Pairing pairing(planned, found);
  pairing.pair(any, both(same_name, same_shape));
  pairing.pair(any, same_name);
  pairing.pair(saved, both(alike, same_place));
  pairing.pair(saved, alike);
  pairing.pair(any, alike);
  return pairing.differences();
}

}  // namespace spillway
