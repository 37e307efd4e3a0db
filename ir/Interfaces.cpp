#include "ir/Interfaces.h"

#include "ir/Interfaces.cpp.inc"
