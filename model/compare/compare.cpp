#include "model/compare/compare.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace spillway {
namespace {

using Key = std::function<std::string(const Item&)>;

/// A name without its number: "loop_add_fusion" of "loop_add_fusion.12{1}".
std::string stem(const std::string& name) {
  std::size_t end = name.find('{');
  if (end == std::string::npos) end = name.size();
  while (end > 0 &&
         (std::isdigit(static_cast<unsigned char>(name[end - 1])) || name[end - 1] == '.'))
    --end;
  return name.substr(0, end);
}

/// Takes from both lists, item by item, what has the same key.
void cancel(std::vector<Item>& first, std::vector<Item>& second, const Key& key) {
  std::unordered_map<std::string, std::vector<Item*>> alike;
  for (Item& item : second)
    if (item.count > 0) alike[key(item)].push_back(&item);
  for (Item& item : first) {
    if (item.count == 0) continue;
    const auto found = alike.find(key(item));
    if (found == alike.end()) continue;
    for (Item* other : found->second) {
      const std::int64_t both = std::min(item.count, other->count);
      item.count -= both;
      other->count -= both;
    }
  }
}

/// What is left, alike items together, largest first.
std::vector<Item> gather(const std::vector<Item>& items) {
  std::vector<Item> left;
  std::unordered_map<std::string, std::size_t> known;
  for (const Item& item : items) {
    if (item.count == 0) continue;
    const auto [at, is_new] = known.emplace(item.shape + '\n' + item.origin, left.size());
    if (is_new)
      left.push_back(item);
    else
      left[at->second].count += item.count;
  }
  std::ranges::stable_sort(left, std::ranges::greater{}, &Item::total);
  return left;
}

/// An id means nothing in another program; a shape does.
std::string name_or_shape(const Residual& residual) {
  return residual.names.empty() ? to_string(residual.slice) : joined_names(residual);
}

ResidualChange change_of(const Residual& residual) {
  return {name_or_shape(residual), residual.layers, residual.total_bytes, {}, {}};
}

bool is_named(const ResidualTable& table) {
  return std::ranges::any_of(table.residuals, [](const Residual& r) { return !r.names.empty(); });
}

}  // namespace

Excess find_excess(std::vector<Item> first, std::vector<Item> second) {
  const Key keys[] = {
      [](const Item& i) { return i.name + '\n' + i.shape + '\n' + i.origin; },
      // Where XLA tells no origin, all would be alike.
      [](const Item& i) { return i.shape + '\n' + (i.origin.empty() ? i.name : i.origin); },
      [](const Item& i) { return i.shape + '\n' + stem(i.name); },
      [](const Item& i) { return i.shape; },
  };
  for (const Key& key : keys) cancel(first, second, key);
  return {gather(first), gather(second)};
}

std::vector<ResidualChange> compare_residuals(const ResidualTable& first,
                                              const ResidualTable& second) {
  const bool by_name = is_named(first) && is_named(second);
  const auto are_same = [by_name](const Residual& a, const Residual& b) {
    if (by_name && !(a.names.empty() && b.names.empty())) return a.names == b.names;
    return a.layers == b.layers && to_string(a.slice) == to_string(b.slice);
  };
  std::vector<ResidualChange> changes;
  std::vector<const Residual*> unpaired;
  for (const Residual& b : second.residuals) unpaired.push_back(&b);
  for (const Residual& a : first.residuals) {
    const auto found =
        std::ranges::find_if(unpaired, [&](const Residual* b) { return are_same(a, *b); });
    ResidualChange change = change_of(a);
    change.first = a.placement;
    if (found != unpaired.end()) {
      change.second = (*found)->placement;
      unpaired.erase(found);
    }
    if (change.first != change.second) changes.push_back(std::move(change));
  }
  for (const Residual* b : unpaired) {
    changes.push_back(change_of(*b));
    changes.back().second = b->placement;
  }
  return changes;
}

bool Comparison::same_placement() const {
  for (const Excess* excess : {&host_arrays, &offloads, &reloads})
    if (!excess->first.empty() || !excess->second.empty()) return false;
  return residuals.empty();
}

Comparison compare(const Inventory& first, const ResidualTable& first_residuals,
                   const Inventory& second, const ResidualTable& second_residuals) {
  Comparison result;
  result.buffers = find_excess(first.buffers, second.buffers);
  result.host_arrays = find_excess(first.host_arrays, second.host_arrays);
  result.offloads = find_excess(first.offloads, second.offloads);
  result.reloads = find_excess(first.reloads, second.reloads);
  result.clones = find_excess(first.clones, second.clones);
  result.residuals = compare_residuals(first_residuals, second_residuals);
  return result;
}

}  // namespace spillway
