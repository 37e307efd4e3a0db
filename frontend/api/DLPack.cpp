// Tensors in the structs of DLPack, and back.
#include "wengert/DLPack.h"

#include "frontend/ops/Operands.h"
#include "wengert/DLPackAbi.h"

#include <cstddef>
#include <cstring>

namespace wg {

using runtime::Array;
using runtime::Buffer;

// The published layout.
static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4 && sizeof(DLTensor) == 48 &&
              offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

static constexpr uint64_t kReadOnly = 1;

namespace {

struct DTypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr DTypeRow kDTypes[] = {{DType::f64, kDLFloat, 64}, {DType::f32, kDLFloat, 32},  {DType::bf16, kDLBfloat, 16},
                                {DType::f16, kDLFloat, 16}, {DType::i64, kDLInt, 64},    {DType::i32, kDLInt, 32},
                                {DType::u8, kDLUInt, 8},    {DType::boolean, kDLBool, 8}};

/// What an exported struct lives in: the tensor, and the lists that the struct points to.
template <class Managed> struct Exported {
  Tensor tensor;
  int64_t shape[runtime::kMaxRank], strides[runtime::kMaxRank];
  Managed managed;
};

} // namespace

// ---- To others ------------------------------------------------------------------------------------------------------

template <class Managed> static Managed *exported(const Tensor &x, const Where &where) {
  x.body(where);
  if (x.symbolic())
    detail::raiseNoElements("to_dlpack", x, where);
  auto *made = new Exported<Managed>{.tensor = x, .shape = {}, .strides = {}, .managed = {}};
  Array array = detail::arrayOf(x);
  int rank = array.shape().rank();
  int64_t stride = 1;
  for (int axis = rank; axis-- > 0;) {
    made->shape[axis] = array.shape().dim(axis);
    made->strides[axis] = stride;
    stride *= std::max<int64_t>(array.shape().dim(axis), 1);
  }
  const DTypeRow *row = std::begin(kDTypes);
  while (row->dtype != array.dtype())
    ++row;
  DLTensor &tensor = made->managed.dl_tensor;
  tensor.data = array.numElements() ? array.buffer.data() : nullptr;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = rank;
  tensor.dtype = {row->code, row->bits, 1};
  tensor.shape = made->shape;
  tensor.strides = made->strides;
  tensor.byte_offset = 0;
  made->managed.manager_ctx = made;
  made->managed.deleter = [](Managed *self) { delete static_cast<Exported<Managed> *>(self->manager_ctx); };
  return &made->managed;
}

DLManagedTensor *to_dlpack(const Tensor &x, Where where) { return exported<DLManagedTensor>(x, where); }

DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &x, Where where) {
  auto *managed = exported<DLManagedTensorVersioned>(x, where);
  managed->version = {1, 0};
  managed->flags = kReadOnly;
  return managed;
}

// ---- From others ----------------------------------------------------------------------------------------------------

template <class Managed> static void release(void *owner) noexcept {
  auto *managed = static_cast<Managed *>(owner);
  if (managed->deleter)
    managed->deleter(managed);
}

/// The type, if it is one of ours on the CPU.
static TensorType typeOf(const DLTensor &tensor, const Where &where) {
  auto refuse = [&](std::string message, std::string remedy, ErrorKind kind = ErrorKind::value) {
    detail::raiseOp("from_dlpack", std::move(message), std::move(remedy), {}, where, kind);
  };
  if (tensor.device.device_type != kDLCPU)
    refuse("the tensor is on a device of type " + std::to_string(static_cast<int32_t>(tensor.device.device_type)) +
               ", not on the CPU (kDLCPU, 1)",
           "copy it to the CPU first");
  const DTypeRow *row = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const DTypeRow &r) {
    return r.code == tensor.dtype.code && r.bits == tensor.dtype.bits;
  });
  if (row == std::end(kDTypes) || tensor.dtype.lanes != 1)
    refuse("the dtype has code " + std::to_string(tensor.dtype.code) + ", " + std::to_string(tensor.dtype.bits) +
               " bits and " + std::to_string(tensor.dtype.lanes) + (tensor.dtype.lanes == 1 ? " lane" : " lanes") +
               ": it is none of f64, f32, bf16, f16, i64, i32, u8 and bool",
           "convert it to one of these first", ErrorKind::type);
  if (tensor.ndim < 0 || tensor.ndim > runtime::kMaxRank)
    refuse("the tensor has " + std::to_string(tensor.ndim) + " axes; 0 to " + std::to_string(runtime::kMaxRank) +
               " are possible",
           "merge axes by a reshape first");
  if (tensor.ndim > 0 && !tensor.shape)
    refuse("the pointer to the shape is null", "give " + std::to_string(tensor.ndim) + " sizes");
  TensorType type{row->dtype, {}};
  for (int axis = 0; axis < tensor.ndim; ++axis)
    type.shape.push_back(tensor.shape[axis]);
  detail::checkSizes("from_dlpack", type.shape, where, type.dtype);
  if (!tensor.data && type.shape.numElements() != 0)
    refuse("the pointer to the elements of " + toString(type) + " is null", "give the place of the elements");
  return type;
}

/// Row-major without gaps. The stride of an axis with one place is of no meaning.
static bool isCompact(const DLTensor &tensor, const TensorType &type) {
  if (!tensor.strides || type.shape.numElements() == 0)
    return true;
  int64_t stride = 1;
  for (int axis = type.shape.rank(); axis-- > 0;) {
    if (type.shape.dim(axis) != 1 && tensor.strides[axis] != stride)
      return false;
    stride *= type.shape.dim(axis);
  }
  return true;
}

/// Copies axis `axis` and those in it to `to`, which is moved behind them.
static void copyStrided(const DLTensor &tensor, const TensorType &type, int axis, const char *from, char *&to) {
  size_t size = sizeOf(type.dtype);
  if (axis == type.shape.rank()) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  for (int64_t i = 0; i < type.shape.dim(axis); ++i)
    copyStrided(tensor, type, axis + 1, from + i * tensor.strides[axis] * static_cast<int64_t>(size), to);
}

template <class Managed> static Tensor imported(Managed *managed, const Where &where) {
  if (!managed)
    detail::raiseOp("from_dlpack", "the pointer to the managed tensor is null", "pass what the other library exported",
                    {}, where);
  struct Guard {
    Managed *managed;
    ~Guard() {
      if (managed)
        release<Managed>(managed);
    }
  } guard{managed};
  if constexpr (std::same_as<Managed, DLManagedTensorVersioned>)
    if (managed->version.major != 1) // nothing but the deleter may be looked at then
      detail::raiseOp("from_dlpack",
                      "the struct has version " + std::to_string(managed->version.major) + "." +
                          std::to_string(managed->version.minor) + "; 1 is read",
                      "export the older struct", {}, where, ErrorKind::unimplemented);
  const DLTensor &tensor = managed->dl_tensor;
  TensorType type = typeOf(tensor, where);
  size_t bytes = static_cast<size_t>(type.shape.numElements()) * sizeOf(type.dtype);
  const char *first = bytes ? static_cast<const char *>(tensor.data) + tensor.byte_offset : nullptr;

  bool compact = isCompact(tensor, type);
  bool shared = compact && reinterpret_cast<uintptr_t>(first) % sizeOf(type.dtype) == 0;
  if (shared && type.dtype == DType::boolean)
    shared = std::all_of(first, first + bytes, [](char byte) { return byte == 0 || byte == 1; });
  if (shared) {
    Buffer buffer = Buffer::refer(first, bytes, &release<Managed>, managed);
    guard.managed = nullptr; // the buffer calls the deleter
    return detail::makeTensor({type, std::move(buffer)});
  }
  Array array = detail::orOutOfMemory("from_dlpack", type, where, [&] { return Array::empty(type.dtype, type.shape); });
  auto *to = static_cast<char *>(array.buffer.data());
  if (compact)
    std::memcpy(to, first, bytes);
  else
    copyStrided(tensor, type, 0, first, to);
  if (type.dtype == DType::boolean)
    for (uint8_t &value : std::span(array.data<uint8_t>(), bytes))
      value = value != 0;
  return detail::makeTensor(std::move(array));
}

Tensor from_dlpack(DLManagedTensor *managed, Where where) { return imported(managed, where); }
Tensor from_dlpack(DLManagedTensorVersioned *managed, Where where) { return imported(managed, where); }

} // namespace wg
