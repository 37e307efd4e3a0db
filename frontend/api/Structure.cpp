// The words of structures, written and read.
#include <wengert/Structure.h>

#include "frontend/staging/Apply.h"

#include <algorithm>
#include <cstring>

namespace wg::detail {

TreeWriter::TreeWriter() = default;
TreeWriter::~TreeWriter() = default;

void TreeWriter::operator()(const Tensor &tensor) {
  words.push_back({.kind = TreeWord::tensor});
  tensors.push_back(tensor);
}
void TreeWriter::operator()(const Variable &variable) {
  words.push_back({.kind = TreeWord::variable});
  variables.push_back(variable);
}
void TreeWriter::operator()(const Grad &grad) {
  if (grad.is_sparse()) {
    words.push_back({.kind = TreeWord::rows, .type = {DType::i64, grad.sparse_rows().shape}});
    tensors.push_back(grad.sparse_rows().indices);
    tensors.push_back(grad.sparse_rows().rows);
  } else if (grad.has_value()) {
    words.push_back({.kind = TreeWord::gradient});
    tensors.push_back(grad.value());
  } else {
    words.push_back({.kind = TreeWord::none, .text = grad.reason()});
  }
}
void TreeWriter::operator()(const std::string &text) { words.push_back({.kind = TreeWord::string, .text = text}); }
void TreeWriter::operator()(const std::string_view &text) {
  words.push_back({.kind = TreeWord::string, .text = std::string(text)});
}
void TreeWriter::operator()(const Ints &sizes) {
  words.push_back({.kind = TreeWord::sizes, .type = {DType::i64, Shape(sizes)}});
}
void TreeWriter::operator()(Count count) {
  words.push_back({.kind = TreeWord::count, .number = static_cast<uint32_t>(count.count)});
}
void TreeWriter::operator()(Key key) {
  key.key ? words.push_back({.kind = TreeWord::key, .text = *key.key}) : words.push_back({.kind = TreeWord::end});
}
void TreeWriter::operator()(Field field) {
  field.name ? words.push_back({.kind = TreeWord::field, .text = std::string(*field.name)})
             : words.push_back({.kind = TreeWord::end});
}

/// Of an x87 number's 16 bytes, 6 are padding and hold anything.
static size_t ownBytes(TreeWord::Kind kind, size_t bytes) {
  return kind == TreeWord::real && bytes == 16 && std::numeric_limits<long double>::digits == 64 ? 10 : bytes;
}

/// The name of a number's type, as it is in C++.
static std::string typeOf(TreeWord::Kind kind, bool isUnsigned, size_t bytes) {
  switch (kind) {
  case TreeWord::real: return bytes == 4 ? "float" : bytes == 8 ? "double" : "long double";
  case TreeWord::boolean: return "bool";
  case TreeWord::enumeration: return "enum";
  default: return (isUnsigned ? "uint" : "int") + std::to_string(8 * bytes) + "_t";
  }
}

void TreeWriter::number(TreeWord::Kind kind, bool isUnsigned, const void *value, size_t bytes) {
  TreeWord word{.kind = kind, .isUnsigned = isUnsigned, .number = static_cast<uint32_t>(bytes)};
  std::memcpy(word.bits, value, ownBytes(kind, bytes));
  word.text = typeOf(kind, isUnsigned, bytes);
  words.push_back(std::move(word));
}

//===- Reading ----------------------------------------------------------------------------------------------------===//

TreeReader::TreeReader(std::string what, std::span<const TreeWord> words, const std::vector<Tensor> *tensors,
                       const std::vector<Variable> *variables, const Where &where)
    : what_(std::move(what)), words_(words), tensors_(tensors), variables_(variables), where_(where) {}
TreeReader::~TreeReader() = default;

static std::string nameOf(const TreeWord &word) {
  switch (word.kind) {
  case TreeWord::argument: return "an argument";
  case TreeWord::tensor: return "a tensor";
  case TreeWord::variable: return "a variable";
  case TreeWord::gradient: return "a gradient";
  case TreeWord::rows: return "a gradient that is rows";
  case TreeWord::none: return "an empty gradient";
  case TreeWord::string: return "a string";
  case TreeWord::sizes: return "a shape";
  case TreeWord::count: return word.number == 1 ? "1 element" : std::to_string(word.number) + " elements";
  case TreeWord::key: return "an element '" + word.text + "'";
  case TreeWord::field: return "a field '" + word.text + "'";
  case TreeWord::end: return "no more fields";
  default: return "a number (" + typeOf(word.kind, word.isUnsigned, word.number) + ")";
  }
}

void TreeReader::refuse(const std::string &wanted) const {
  std::string found = at_ < words_.size() ? nameOf(words_[at_]) : "nothing more";
  raiseOp("load", what_ + " has " + found + " where the type that is asked for has " + wanted,
          "ask for the type that was saved", {}, where_, ErrorKind::type);
}

const TreeWord &TreeReader::next(std::initializer_list<TreeWord::Kind> kinds, const char *wanted) {
  if (at_ == words_.size() || std::find(kinds.begin(), kinds.end(), words_[at_].kind) == kinds.end())
    refuse(wanted);
  return words_[at_++];
}

Tensor TreeReader::tensor() {
  next({TreeWord::tensor}, "a tensor");
  return tensors_ ? (*tensors_)[tensor_++] : Tensor();
}
Variable TreeReader::variable() {
  next({TreeWord::variable}, "a variable");
  if (!variables_) // the results of a function are tensors
    refuse("a tensor");
  return (*variables_)[variable_++];
}
Grad TreeReader::gradient() {
  const TreeWord &word = next({TreeWord::gradient, TreeWord::rows, TreeWord::none}, "a gradient");
  switch (word.kind) {
  case TreeWord::none: return Grad::none(word.text);
  case TreeWord::gradient: return tensors_ ? Grad((*tensors_)[tensor_++]) : Grad(Tensor(TensorSpec()));
  default: {
    if (!tensors_)
      return emptyRows(word.type.shape);
    size_t first = std::exchange(tensor_, tensor_ + 2);
    return Grad(SparseRows{(*tensors_)[first], (*tensors_)[first + 1], word.type.shape}, where_);
  }
  }
}
std::string TreeReader::string() { return next({TreeWord::string}, "a string").text; }
Ints TreeReader::sizes() { return next({TreeWord::sizes}, "a shape").type.shape; }
size_t TreeReader::count() {
  size_t count = next({TreeWord::count}, "a list, a map or an optional").number;
  // Elements without any words, as std::monostate has, are few.
  if (count > words_.size() - at_ && count > 1024) {
    --at_;
    refuse("as many as there are words for");
  }
  return count;
}
std::string TreeReader::key() { return next({TreeWord::key}, "an element of a map").text; }
void TreeReader::field(std::string_view name) {
  if (at_ == words_.size() || words_[at_].kind != TreeWord::field || words_[at_].text != name)
    refuse("a field '" + std::string(name) + "'");
  ++at_;
}
void TreeReader::end() { next({TreeWord::end}, "the end of an element"); }
void TreeReader::number(TreeWord::Kind kind, bool isUnsigned, void *value, size_t bytes) {
  if (at_ == words_.size() || words_[at_].kind != kind || words_[at_].isUnsigned != isUnsigned ||
      words_[at_].number != bytes)
    refuse("a number (" + typeOf(kind, isUnsigned, bytes) + ")");
  uint64_t bits[2] = {words_[at_].bits[0], words_[at_].bits[1]};
  if (kind == TreeWord::boolean)
    bits[0] = bits[0] != 0;
  std::memcpy(value, bits, ownBytes(kind, bytes));
  ++at_;
}
void TreeReader::finish() {
  if (at_ != words_.size())
    refuse("nothing more");
}

} // namespace wg::detail
