// What of a plan a compiled program does not do: stacks that lie elsewhere, that are saved although
// they should be recomputed or the other way round, and stacks that the plan knows nothing of.
//
//   planned       compiled program            difference
//   q  offload    q  pinned_host, 32 layers   none
//   k  offload    k  device, 32 layers        offload -> keep
//   m  recompute  -                           none
//   v  keep       -                           keep -> recompute
//   -             bf16[…] device              (nothing) -> keep
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/plan/plan_file.h"

namespace spillway {

/// A stack, or values of as many layers, that a program saves.
struct SavedValue {
  std::vector<std::string> names;
  bool is_sure = false;  ///< that these are its names, and not those of another of its shape
  std::string shape;     ///< of one layer
  std::int64_t layers = 0;
  Bytes bytes;
  Placement placement = Placement::kDevice;
};

/// What a program saves; one of the tables is empty. `names` are those that the tables were made
/// with.
std::vector<SavedValue> list_saved(const ResidualTable& scanned, const UnrolledTable& unrolled,
                                   const NameList& names);

struct NotDone {
  std::string label;  ///< names, or shape
  std::string shape;
  std::int64_t layers = 0;
  Bytes bytes;
  std::optional<Choice> planned;  ///< none: the plan does not know it
  Choice found = Choice::kKeep;   ///< recompute: it is not saved
  /// It is where it should be, but this much larger or smaller: other layers, or another type.
  Bytes growth;
};

/// Paired by name where names are sure, then by shape and layers: so of several values of one shape
/// whose names cannot be told apart, as many must lie where the plan has as many. Layers apart that
/// one program saves otherwise (unrolled ones) show as growth.
std::vector<NotDone> find_not_done(const std::vector<PlannedResidual>& planned,
                                   const std::vector<SavedValue>& found);

}  // namespace spillway
