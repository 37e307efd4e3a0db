// The structs of DLPack for programs that have no dlpack.h: the published ABI, of which dlpack.h of any version is
// another spelling. Where both are needed, dlpack.h is included first; its declarations are used then.
#pragma once

#include <cstdint>

extern "C" {

#ifndef DLPACK_DLPACK_H_

enum DLDeviceType : int32_t { kDLCPU = 1, kDLCUDA = 2 }; // of some twenty; one that is not listed is a number

struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
};

enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

/// `lanes` numbers of `bits` bits each; 1 but for vector types.
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void *data; ///< may be null if there are no elements
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;     ///< in elements; null: row-major without gaps
  uint64_t byte_offset; ///< from `data` to the first element
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self); ///< frees the struct, too; may be null
};

#endif

#ifndef DLPACK_MAJOR_VERSION // dlpack.h before 1.0 lacks the rest

struct DLPackVersion {
  uint32_t major;
  uint32_t minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(DLManagedTensorVersioned *self);
  uint64_t flags; ///< 1: the elements are read-only; 2: they are a copy
  DLTensor dl_tensor;
};

#endif

} // extern "C"
