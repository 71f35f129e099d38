# Finds libjpeg-turbo and libpng, which decode images. Defines gossamer_image_codecs. The Python module
# is made of the same layer and calls neither; it is linked with them where files are compiled together.
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
add_library(gossamer_image_codecs INTERFACE)
target_include_directories(gossamer_image_codecs SYSTEM INTERFACE
  ${JPEG_INCLUDE_DIRS} ${PNG_INCLUDE_DIRS})
list(JOIN JPEG_LIBRARIES "," jpeg_libraries)
list(TRANSFORM PNG_LIBRARIES REPLACE "^m$" "-lm")  # beside a static one
list(JOIN PNG_LIBRARIES "," png_libraries)
target_link_libraries(gossamer_image_codecs INTERFACE
  "-Wl,--push-state,--as-needed,${jpeg_libraries},${png_libraries},--pop-state")
