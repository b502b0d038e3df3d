#include "model/spec/stacked_weights.h"

#include <algorithm>

namespace spillway {
namespace {

using Axes = std::vector<MeshAxis>;

/// Axes of the mesh that a dimension is spread over and put together again for a product.
Axes gathered_axes(WeightAxis axis, const StepSpec& step, bool has_hidden) {
  const bool experts_are_gathered = step.dispatch == Dispatch::kCapacity;
  Axes axes;
  const auto add = [&](MeshAxis a) {
    if (step.mesh[a] > 1) axes.push_back(a);
  };
  switch (axis) {
    case WeightAxis::kEmbed:
    case WeightAxis::kLatent:
      add(MeshAxis::kFsdp);
      if (!has_hidden) add(MeshAxis::kFsdpTranspose);
      add(MeshAxis::kContext);
      add(MeshAxis::kExpert);
      break;
    case WeightAxis::kEmbedMoe:
      add(MeshAxis::kFsdp);
      if (!has_hidden) add(MeshAxis::kFsdpTranspose);
      add(MeshAxis::kContext);
      break;
    case WeightAxis::kMlp:
    case WeightAxis::kMlpMoe:
      add(MeshAxis::kFsdpTranspose);
      break;
    case WeightAxis::kExperts:
      if (experts_are_gathered) add(MeshAxis::kExpert);
      break;
    default:
      break;
  }
  return axes;
}

}  // namespace

std::vector<std::int64_t> StackedWeight::whole(const Mesh& mesh) const {
  std::vector<std::int64_t> dims = local;
  for (const Gather& gather : gathers) dims[gather.dim] *= group_size(mesh, gather.axes);
  return dims;
}

std::vector<std::int64_t> StackedWeight::stacked() const {
  std::vector<std::int64_t> dims = local;
  dims.insert(dims.begin(), layers);
  return dims;
}

std::vector<StackedWeight> list_stacked_weights(const StepSpec& step, int group) {
  std::vector<StackedWeight> weights;
  const std::string prefix =
      "decoder/" + step.model.groups[static_cast<std::size_t>(group)].name + "/";
  for (const WeightArray& array : list_weights(step)) {
    if (array.group != group || !array.is_parameter) continue;
    StackedWeight weight;
    weight.array = array;
    weight.path = array.path.substr(prefix.size());
    weight.local = local_dims(array, step.mesh).value();
    const auto layer_axis = static_cast<std::size_t>(array.layer_axis());
    weight.layers = weight.local[layer_axis];
    weight.local.erase(weight.local.begin() + static_cast<std::ptrdiff_t>(layer_axis));
    std::vector<WeightAxis> axes = array.axes;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(layer_axis));
    bool hidden = false;
    for (const WeightAxis axis : axes)
      hidden |= axis == WeightAxis::kMlp || axis == WeightAxis::kMlpMoe;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Axes over = gathered_axes(axes[i], step, hidden);
      if (!over.empty()) weight.gathers.push_back({i, std::move(over)});
    }
    // Experts last: XLA puts together what is nearest to a product's rows first.
    if (!axes.empty() && axes.front() == WeightAxis::kExperts && weight.gathers.size() > 1)
      std::ranges::rotate(weight.gathers, weight.gathers.begin() + 1);
    weights.push_back(std::move(weight));
  }
  return weights;
}

}  // namespace spillway
