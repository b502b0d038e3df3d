#include "sim/planner/choose_options.h"

#include <coin/Cbc_C_Interface.h>

#include <memory>
#include <mutex>
#include <string>

namespace spillway {
namespace {

/// CBC's own objects are not made for several threads.
std::mutex& solver_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// A model of CBC. Columns and rows are numbered in the order in which they are added.
class Model {
 public:
  Model() : model_(Cbc_newModel(), &Cbc_deleteModel) { Cbc_setLogLevel(model_.get(), 0); }

  int add_binary(double cost) { return add_column(1, cost, true); }
  int add_column(double upper, double cost, bool is_integer = false) {
    const std::string name = "c" + std::to_string(columns_);
    Cbc_addCol(model_.get(), name.c_str(), 0, upper, cost, is_integer ? 1 : 0, 0, nullptr, nullptr);
    return columns_++;
  }
  /// sense: 'L' at most, 'E' equal.
  void add_row(const std::vector<int>& columns, const std::vector<double>& factors, char sense,
               double right) {
    const std::string name = "r" + std::to_string(rows_++);
    Cbc_addRow(model_.get(), name.c_str(), static_cast<int>(columns.size()), columns.data(),
               factors.data(), sense, right);
  }
  bool solve() {
    Cbc_solve(model_.get());
    return Cbc_isProvenOptimal(model_.get()) != 0;
  }
  bool is_chosen(int column) const { return Cbc_getColSolution(model_.get())[column] > 0.5; }

 private:
  std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> model_;
  int columns_ = 0, rows_ = 0;
};

}  // namespace

std::vector<std::size_t> choose_options(const OptionProblem& problem) {
  const std::lock_guard lock(solver_mutex());
  Model model;
  std::vector<std::vector<int>> columns;  // of each group
  for (const std::vector<Option>& group : problem.groups) {
    std::vector<int>& of_group = columns.emplace_back();
    for (const Option& option : group) of_group.push_back(model.add_binary(option.cost));
  }
  std::vector<int> above;
  for (std::size_t resource = 0; resource < problem.limits.size(); ++resource)
    above.push_back(model.add_column(1e30, problem.penalty));

  for (const std::vector<int>& of_group : columns)
    model.add_row(of_group, std::vector<double>(of_group.size(), 1), 'E', 1);
  for (std::size_t resource = 0; resource < problem.limits.size(); ++resource) {
    std::vector<int> used = {above[resource]};
    std::vector<double> factors = {-1};
    for (std::size_t g = 0; g < columns.size(); ++g)
      for (std::size_t o = 0; o < columns[g].size(); ++o) {
        used.push_back(columns[g][o]);
        factors.push_back(problem.groups[g][o].uses[resource]);
      }
    model.add_row(used, factors, 'L', problem.limits[resource]);
  }
  for (const std::vector<std::size_t>& excluded : problem.excluded) {
    std::vector<int> chosen;
    for (std::size_t g = 0; g < columns.size(); ++g) chosen.push_back(columns[g][excluded[g]]);
    model.add_row(chosen, std::vector<double>(chosen.size(), 1), 'L',
                  static_cast<double>(chosen.size()) - 1);
  }

  if (!model.solve()) return {};
  std::vector<std::size_t> choice;
  for (const std::vector<int>& of_group : columns)
    for (std::size_t o = 0; o < of_group.size(); ++o)
      if (model.is_chosen(of_group[o])) choice.push_back(o);
  return choice.size() == columns.size() ? choice : std::vector<std::size_t>{};
}

}  // namespace spillway
