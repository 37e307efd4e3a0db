// Which version of Wengert is this? What may change from one to the next: docs/abi.md.
#pragma once

#include <wengert/runtime/Export.h>

/// The version of these headers, for the preprocessor: `WENGERT_VERSION >= 1200` is 0.12.0 or later.
#define WENGERT_VERSION_MAJOR 0
#define WENGERT_VERSION_MINOR 1
#define WENGERT_VERSION_PATCH 0
#define WENGERT_VERSION (WENGERT_VERSION_MAJOR * 10000 + WENGERT_VERSION_MINOR * 100 + WENGERT_VERSION_PATCH)
/// The same as text.
#define WENGERT_VERSION_STRING "0.1.0"

namespace wg {

/// The version of the library that is loaded, "0.1.0".
WENGERT_API const char *version() noexcept;

} // namespace wg
