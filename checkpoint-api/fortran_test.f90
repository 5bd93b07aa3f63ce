! Every kind of variable that the module accepts, saved and restored; and its errors.
! usage: checkpoint_fortran_test FILE
program fortran_test
  use sublet_checkpoint
  implicit none
  character(1000) :: path
  integer(int32), target :: small, many(3)
  integer(int64), target :: large, plane(2, 2)
  real(real32), target :: single, singles(4)
  real(real64), target :: double, space(2, 3, 4)
  logical :: resumed
  integer :: stat

  call get_command_argument(1, path)
  call fill(1)
  call run(.false.)
  call fill(0)
  call run(.true.)
  call expect(small == -1 .and. all(many == -1), "int32")
  call expect(large == 2_int64**40 .and. all(plane == 2_int64**40), "int64")
  call expect(single == 0.5_real32 .and. all(singles == 0.5_real32), "real32")
  call expect(double == 0.1_real64 .and. all(space == 0.1_real64), "real64")
  call refusals()

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(2a)', "fails: ", what
    stop 1, quiet=.true.
  end subroutine

  subroutine fill(with)
    integer, intent(in) :: with
    small = -with
    many = -with
    large = with*2_int64**40
    plane = large
    single = with*0.5_real32
    singles = single
    double = with*0.1_real64
    space = double
  end subroutine

  ! Saves at its end if new; finishes, which removes the files, if resumed.
  subroutine run(expected)
    logical, intent(in) :: expected
    type(checkpoint) :: c
    logical :: leave
    call c%open("kinds", 3)
    call c%variable("small", small)
    call c%variable("many", many)
    call c%variable("large", large)
    call c%variable("plane", plane)
    call c%variable("single", single)
    call c%variable("singles", singles)
    call c%variable("double", double)
    call c%variable("space", space)
    call c%start(path=path, period_s=checkpoint_never, leave_by_returning=.true., resumed=resumed)
    call expect(resumed .eqv. expected, "resumed")
    call c%progress(1_int64, 2_int64)
    call c%say("half way  ")
    call c%point(leave)
    call expect(.not. leave, "nobody asked to leave")
    call c%save()
    if (expected) call c%finish()
    call c%close()
  end subroutine

  subroutine refusals()
    type(checkpoint) :: c
    call c%open("", 1, stat)
    call expect(stat == 22, "a program without a name")
    call c%open("errors", 1, stat)
    call expect(stat == 0, "open")
    call c%variable("some", many(1:3:2), stat)
    call expect(stat == 22, "an array with gaps")
    call c%variable("many", many, stat)
    call expect(stat == 0, "variable")
    call c%variable("many", many, stat)
    call expect(stat == 22, "a name that is used")
    call c%save(stat)
    call expect(stat == 2, "nowhere to save")
    call c%close()
  end subroutine

end program
