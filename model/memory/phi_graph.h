// Which phis of a program are values of their own. A phi stands where several values may arrive: at
// what a loop carries, or behind a conditional. Many are needless: a carry that the body hands on
// unchanged is the value the loop began with.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace spillway {

/// An origin is what a phi meets: an ordinary definition, or another phi.
class PhiGraph {
 public:
  struct Origin {
    bool is_phi = false;
    std::uint32_t index = 0;  ///< of the definition (the caller's numbers), or of the phi
    friend bool operator==(const Origin&, const Origin&) = default;
  };

  /// Adds a phi that meets these; phis are numbered 0, 1, … as they are added. Some definition must
  /// reach every phi in the end, as what a loop begins with does.
  void add(std::vector<Origin> inputs) { phis_.push_back({std::move(inputs), std::nullopt}); }

  /// Finds what each phi stands for, by XLA's two rules (PhiGraph::Optimize), until neither
  /// applies: phis from which one definition alone can be reached are that definition; a phi that
  /// meets one other thing, apart from itself, is that. Time is linear, but for the depth of
  /// chains.
  void simplify();

  /// What an origin turned out to be: itself for definitions and for phis that are needed. Valid
  /// after simplify().
  Origin settle(Origin origin);

  std::size_t size() const { return phis_.size(); }

 private:
  struct Phi {
    std::vector<Origin> inputs;
    std::optional<Origin> same_as;
  };

  void find_users();
  void merge_closures();
  void merge_trivial();

  std::vector<Phi> phis_;
  std::vector<std::vector<std::uint32_t>> users_;  ///< phis that meet each phi
};

}  // namespace spillway
