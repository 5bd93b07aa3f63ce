#version 3.7;
global_settings { assumed_gamma 1.0 }
camera { location <0, 2, -5> look_at <0, 0.5, 0> }
light_source { <5, 8, -6> rgb 1.2 area_light <1, 0, 0>, <0, 0, 1>, 6, 6 }
plane { y, 0 pigment { checker rgb 0.9 rgb 0.2 } finish { reflection 0.2 } }
#for (I, 0, 11)
  sphere { <2 * sin(I * pi / 6), 0.5, 2 * cos(I * pi / 6)>, 0.5
    pigment { rgbt <abs(sin(I)), abs(cos(I)), 0.5, 0.5> } finish { reflection 0.4 } interior { ior 1.3 } }
#end
