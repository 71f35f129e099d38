#pragma once
/// Resizes images: bilinear, and antialiased where they shrink, as Pillow's BILINEAR and
/// torchvision's antialias=True are. A pixel of the result is the mean of those around its place,
/// with weights max(0, 1 − |distance| / max(1, scale)) in each direction, scale = pixels before per
/// pixel after; it is rounded to the nearest.

#include "gossamer/data/image.h"

namespace gossamer {

/// The image resized until it just covers `size`, and the middle of that: the shorter side fits
/// where `size` is a square.
Image fit_image(const ImageView& image, ImageSize size);

/// The box alone, resized; what is around it has no part in it.
Image resize_box(const ImageView& image, const ImageBox& box, ImageSize size);

}  // namespace gossamer
