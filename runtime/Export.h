// Which names the shared library shows: those that public headers mark. Everything else is hidden (docs/abi.md).
#pragma once

/// On a function without a body in the header, and on a class that has one such member. Exceptions and classes that
/// have virtual functions keep one identity wherever they are used, whatever visibility the user's code is compiled
/// with.
#define WENGERT_API [[gnu::visibility("default")]]
