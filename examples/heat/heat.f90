! The heat equation on a square plate whose upper edge is kept hot.
! usage: heat POINTS STEPS OUTPUT [CHECKPOINT]
program heat
  use sublet_checkpoint
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  real(real64), parameter :: part = 0.2_real64  ! of the difference to the neighbours, in a step
  type(checkpoint) :: c
  real(real64), allocatable, target :: plate(:, :)
  real(real64), allocatable :: next(:, :)
  integer(int64), target :: step = 0
  integer(int64) :: steps
  integer :: points, i, j

  if (command_argument_count() < 3 .or. command_argument_count() > 4) call usage()
  points = int(number(1))
  steps = number(2)
  if (points < 3 .or. points > 10000 .or. steps < 1) call usage()
  allocate (plate(points, points), source=0.0_real64)
  plate(:, 1) = 100
  next = plate

  call c%open("heat", 1)
  call c%variable("plate", plate)
  call c%variable("step", step)
  if (command_argument_count() == 4) then
    call c%start(path=argument(4))
  else
    call c%start()
  end if
  do while (step < steps)
    do j = 2, points - 1
      do i = 2, points - 1
        next(i, j) = plate(i, j) + part*(plate(i - 1, j) + plate(i + 1, j) + plate(i, j - 1) &
                                         + plate(i, j + 1) - 4*plate(i, j))
      end do
    end do
    plate(2:points - 1, 2:points - 1) = next(2:points - 1, 2:points - 1)
    step = step + 1
    call c%progress(step, steps)
    call c%point()  ! plate and step belong together: a safe point
  end do
  call write_plate(argument(3))
  call c%finish()
  call c%close()
  deallocate (plate, next)

contains

  function argument(place) result(text)
    integer, intent(in) :: place
    character(:), allocatable :: text
    integer :: length
    call get_command_argument(place, length=length)
    allocate (character(length) :: text)
    call get_command_argument(place, text)
  end function

  function number(place) result(value)
    integer, intent(in) :: place
    integer(int64) :: value
    character(:), allocatable :: text
    integer :: error
    text = argument(place)
    read (text, *, iostat=error) value
    if (error /= 0) call usage()
  end function

  subroutine usage()
    write (error_unit, '(a)') "usage: heat POINTS STEPS OUTPUT [CHECKPOINT]"
    stop 2, quiet=.true.
  end subroutine

  ! One line for each row, with as many digits as identify a number.
  subroutine write_plate(path)
    character(*), intent(in) :: path
    integer :: out, row
    open (newunit=out, file=path, action="write", status="replace")
    do row = 1, points
      write (out, '(*(es24.16e3))') plate(:, row)
    end do
    close (out)
  end subroutine

end program
