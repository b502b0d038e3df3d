#include "model/spec/hlo_text.h"

#include <algorithm>

namespace spillway {
namespace {

std::string tuple_text(const std::vector<HloArray>& arrays) {
  std::string text = "(";
  for (std::size_t i = 0; i < arrays.size(); ++i) text += (i ? ", " : "") + to_text(arrays[i]);
  return text + ")";
}

}  // namespace

std::string to_text(const HloArray& array) {
  std::string text(element_type_name(array.type));
  text += '[';
  for (std::size_t i = 0; i < array.dims.size(); ++i)
    text += (i ? "," : "") + std::to_string(array.dims[i]);
  text += ']';
  if (array.dims.empty()) return text;
  text += '{';
  for (std::size_t i = array.dims.size(); i-- > 0;) text += std::to_string(i) + (i ? "," : "");
  return text + '}';
}

std::int64_t element_count(const HloArray& array) {
  std::int64_t product = 1;
  for (const std::int64_t dim : array.dims) product *= dim;
  return product;
}

std::string join_refs(const HloValues& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + values[i].ref;
  return text;
}

std::string HloText::unique(std::string_view base) {
  const auto found = counts_.try_emplace(std::string(base), 0).first;
  const int number = found->second++;
  return number ? std::string(base) + "." + std::to_string(number) : std::string(base);
}

std::size_t HloText::frame(const std::string& file) {
  const auto found = std::ranges::find(files_, file);
  if (found != files_.end()) return static_cast<std::size_t>(found - files_.begin()) + 1;
  files_.push_back(file);
  return files_.size();
}

std::string HloText::reducer(std::string_view operation, ElementType type) {
  const std::string key = std::string(operation) + "_" + std::string(element_type_name(type));
  std::string& name = reducers_[key];
  if (!name.empty()) return name;
  name = unique("reduce_" + key);
  const std::string scalar = to_text(HloArray{type, {}});
  add("%" + name + " (a: " + scalar + ", b: " + scalar + ") -> " + scalar + " {\n  %a = " + scalar +
      " parameter(0)\n  %b = " + scalar + " parameter(1)\n  ROOT %r = " + scalar + " " +
      std::string(operation) + "(%a, %b)\n}\n");
  return name;
}

std::string HloText::finish(std::string_view header) const {
  std::string text(header);
  text += "\n\nFileNames\n";
  for (std::size_t i = 0; i < files_.size(); ++i)
    text += std::to_string(i + 1) + " \"" + files_[i] + "\"\n";
  text += "\nFunctionNames\n1 \"layer\"\n\nFileLocations\n";
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    text += number + " {file_name_id=" + number +
            " function_name_id=1 line=1 end_line=1 column=0 end_column=0}\n";
  }
  text += "\nStackFrames\n";
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    text += number + " {file_location_id=" + number + " parent_frame_id=" + number + "}\n";
  }
  return text + "\n" + computations_;
}

std::string HloBlock::metadata(std::string_view operation) const {
  std::string text = ", metadata={op_name=\"" + scope_ + std::string(operation) + "\"";
  if (!source_.empty()) text += " stack_frame_id=" + std::to_string(module_->frame(source_));
  return text + "}";
}

HloValue HloBlock::parameter(int number, const HloArray& array, std::string_view op_name) {
  const std::string name = module_->unique("param");
  parameters_ += (parameters_.empty() ? "" : ", ") + name + ": " + to_text(array);
  body_ += "  %" + name + " = " + to_text(array) + " parameter(" + std::to_string(number) + ")";
  if (!op_name.empty()) body_ += ", metadata={op_name=\"" + std::string(op_name) + "\"}";
  body_ += "\n";
  return {"%" + name, array};
}

HloValues HloBlock::tuple_parameter(const std::vector<HloArray>& arrays) {
  const std::string name = module_->unique("param");
  parameters_ = name + ": " + tuple_text(arrays);
  body_ += "  %" + name + " = " + tuple_text(arrays) + " parameter(0)\n";
  HloValues values;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    values.push_back({"%" + name + "#" + std::to_string(i), arrays[i]});
  return values;
}

HloValue HloBlock::constant(const HloArray& array, std::string_view literal) {
  const std::string name = module_->unique("constant");
  body_ += "  %" + name + " = " + to_text(array) + " constant(" + std::string(literal) + ")\n";
  return {"%" + name, array};
}

HloValue HloBlock::add(std::string_view base, const HloArray& array, const std::string& text) {
  const std::string name = module_->unique(base);
  body_ += "  %" + name + " = " + to_text(array) + " " + text + metadata(base) + "\n";
  return {"%" + name, array};
}

HloValues HloBlock::add_tuple(std::string_view base, const std::vector<HloArray>& arrays,
                              const std::string& text) {
  const std::string name = module_->unique(base);
  body_ += "  %" + name + " = " + tuple_text(arrays) + " " + text + metadata(base) + "\n";
  HloValues values;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    values.push_back({"%" + name + "#" + std::to_string(i), arrays[i]});
  return values;
}

HloValue HloBlock::view(const HloValue& value, std::vector<std::int64_t> dims) {
  if (dims == value.array.dims) return value;
  return add("bitcast", {value.array.type, std::move(dims)}, "bitcast(" + value.ref + ")");
}

HloValue HloBlock::copy(const HloValue& value) {
  return add("copy", value.array, "copy(" + value.ref + ")");
}

std::string HloBlock::group(const HloValues& values) {
  std::vector<HloArray> arrays;
  for (const HloValue& value : values) arrays.push_back(value.array);
  return start("tuple", tuple_text(arrays), "tuple(" + join_refs(values) + ")");
}

std::string HloBlock::start(std::string_view base, const std::string& shape,
                            const std::string& text) {
  const std::string name = "%" + module_->unique(base);
  body_ += "  " + name + " = " + shape + " " + text + metadata(base) + "\n";
  return name;
}

void HloBlock::finish(const HloValues& results, bool tuple, bool entry) {
  std::string result = to_text(results.front().array);
  if (tuple) {
    std::vector<HloArray> arrays;
    for (const HloValue& value : results) arrays.push_back(value.array);
    result = tuple_text(arrays);
    body_ += "  ROOT %" + module_->unique("tuple") + " = " + result + " tuple(" +
             join_refs(results) + ")\n";
  } else {
    const std::string at = "  " + results.front().ref + " = ";
    const std::size_t line = body_.rfind("\n" + at);
    const std::size_t begin = line == std::string::npos ? 0 : line + 1;
    body_.insert(begin + 2, "ROOT ");
  }
  module_->add(std::string(entry ? "ENTRY " : "") + "%" + name_ + " (" + parameters_ + ") -> " +
               result + " {\n" + body_ + "}\n");
}

}  // namespace spillway
