#include "base/giop_filter.h"
