! The checkpoint API for Fortran: a thin layer over sublet_checkpoint.h, which says more.
!
!   use sublet_checkpoint
!   type(checkpoint) :: c
!   real(real64), target :: heat(100, 100) = 0
!   integer(int64), target :: step = 0
!   call c%open("my-program", 1)
!   call c%variable("heat", heat)
!   call c%variable("step", step)
!   call c%start()
!   do while (step < last)
!     ...                              ! heat and step are consistent: a safe point
!     step = step + 1
!     call c%progress(step, last)
!     call c%point()
!   end do
!   call c%finish()
!   call c%close()
!
! Variables are integers and reals of 4 and 8 bytes, scalars or contiguous arrays of any rank;
! they need the attribute target, and must stay allocated with the same size until close.
!
! stat, where there is one, is 0 or an errno value. Without stat, an error ends the program:
! with status 1, after a message. One thread at a time.
module sublet_checkpoint
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64, error_unit
  implicit none
  private
  public :: checkpoint, checkpoint_never, int32, int64, real32, real64

  integer(int32), parameter :: checkpoint_never = -1  ! as period_s: no periodic saves

  ! The numbers of enum sublet_checkpoint_type, and errors that are found here.
  integer(c_int), parameter :: type_int32 = 5, type_int64 = 7, type_float32 = 9, type_float64 = 10
  integer(c_int), parameter :: no_memory = 12, invalid = 22

  type :: checkpoint
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, public :: open => open_handle
    generic, public :: variable => name_int32, name_int64, name_real32, name_real64
    procedure, public :: start => start_handle
    procedure, public :: point => make_point
    procedure, public :: progress => report_progress
    procedure, public :: say => say_line
    procedure, public :: save => save_now
    procedure, public :: finish => finish_work
    procedure, public :: close => close_handle
    procedure, private :: name_int32, name_int64, name_real32, name_real64
  end type

  type, bind(c) :: options
    type(c_ptr) :: path
    integer(c_int32_t) :: period_s
    integer(c_int) :: leave_by_returning
  end type

  interface
    function c_open(program, layout) bind(c, name="sublet_checkpoint_open")
      import :: c_ptr, c_char, c_int32_t
      character(kind=c_char), intent(in) :: program(*)
      integer(c_int32_t), value :: layout
      type(c_ptr) :: c_open
    end function
    function c_variable(c, name, elements, count, kind) bind(c, name="sublet_checkpoint_variable")
      import :: c_ptr, c_char, c_size_t, c_int
      type(c_ptr), value :: c, elements
      character(kind=c_char), intent(in) :: name(*)
      integer(c_size_t), value :: count
      integer(c_int), value :: kind
      integer(c_int) :: c_variable
    end function
    function c_start(c, how) bind(c, name="sublet_checkpoint_start")
      import :: c_ptr, c_int, options
      type(c_ptr), value :: c
      type(options), intent(in) :: how
      integer(c_int) :: c_start
    end function
    function c_point(c) bind(c, name="sublet_checkpoint_point")
      import :: c_ptr, c_int
      type(c_ptr), value :: c
      integer(c_int) :: c_point
    end function
    subroutine c_progress(c, done, total) bind(c, name="sublet_checkpoint_progress")
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: c
      integer(c_int64_t), value :: done, total
    end subroutine
    subroutine c_say(c, text) bind(c, name="sublet_checkpoint_say")
      import :: c_ptr, c_char
      type(c_ptr), value :: c
      character(kind=c_char), intent(in) :: text(*)
    end subroutine
    function c_save(c) bind(c, name="sublet_checkpoint_save")
      import :: c_ptr, c_int
      type(c_ptr), value :: c
      integer(c_int) :: c_save
    end function
    subroutine c_finish(c) bind(c, name="sublet_checkpoint_finish")
      import :: c_ptr
      type(c_ptr), value :: c
    end subroutine
    subroutine c_close(c) bind(c, name="sublet_checkpoint_close")
      import :: c_ptr
      type(c_ptr), value :: c
    end subroutine
  end interface

contains

  subroutine answer(error, what, stat)
    integer(c_int), intent(in) :: error
    character(*), intent(in) :: what
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = error
    else if (error /= 0) then
      write (error_unit, '(3a, i0)') "sublet checkpoint: ", what, ": error ", error
      stop 1, quiet=.true.
    end if
  end subroutine

  ! A checkpoint is resumed only by a program of the same name and layout: increase the layout
  ! whenever the meaning of the variables changes.
  subroutine open_handle(this, program, layout, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: program
    integer, intent(in) :: layout
    integer, intent(out), optional :: stat
    integer(c_int) :: error
    this%handle = c_open(trim(program)//c_null_char, int(layout, c_int32_t))
    error = 0
    if (.not. c_associated(this%handle)) then
      error = merge(no_memory, invalid, len_trim(program) >= 1 .and. len_trim(program) <= 63)
    end if
    call answer(error, "open "//trim(program), stat)
  end subroutine

  ! As pointers, the compiler accepts only variables with the attribute target, whose values
  ! are in memory when a point is made.
  subroutine name_int32(this, name, values, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: name
    integer(int32), pointer, intent(in) :: values(..)
    integer, intent(out), optional :: stat
    call register(this, name, c_loc(values), size(values, kind=c_size_t), type_int32, &
                  is_contiguous(values), stat)
  end subroutine

  subroutine name_int64(this, name, values, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: name
    integer(int64), pointer, intent(in) :: values(..)
    integer, intent(out), optional :: stat
    call register(this, name, c_loc(values), size(values, kind=c_size_t), type_int64, &
                  is_contiguous(values), stat)
  end subroutine

  subroutine name_real32(this, name, values, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: name
    real(real32), pointer, intent(in) :: values(..)
    integer, intent(out), optional :: stat
    call register(this, name, c_loc(values), size(values, kind=c_size_t), type_float32, &
                  is_contiguous(values), stat)
  end subroutine

  subroutine name_real64(this, name, values, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: name
    real(real64), pointer, intent(in) :: values(..)
    integer, intent(out), optional :: stat
    call register(this, name, c_loc(values), size(values, kind=c_size_t), type_float64, &
                  is_contiguous(values), stat)
  end subroutine

  subroutine register(this, name, first, count, kind, contiguous, stat)
    class(checkpoint), intent(in) :: this
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: first
    integer(c_size_t), intent(in) :: count
    integer(c_int), intent(in) :: kind
    logical, intent(in) :: contiguous
    integer, intent(out), optional :: stat
    integer(c_int) :: error
    error = invalid
    if (contiguous) error = c_variable(this%handle, trim(name)//c_null_char, first, count, kind)
    call answer(error, "variable "//trim(name), stat)
  end subroutine

  ! path: the file to use without a pool. period_s: seconds between periodic saves; 0: chosen;
  ! checkpoint_never: none. With leave_by_returning, point tells when to leave. resumed:
  ! whether the variables were restored. The reason of a refusal is on stderr; stat is then -1.
  subroutine start_handle(this, path, period_s, leave_by_returning, resumed, stat)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in), optional :: path
    integer(int32), intent(in), optional :: period_s
    logical, intent(in), optional :: leave_by_returning
    logical, intent(out), optional :: resumed
    integer, intent(out), optional :: stat
    character(kind=c_char, len=:), allocatable, target :: file
    type(options) :: how
    integer(c_int) :: result
    how = options(c_null_ptr, 0, 0)
    if (present(path)) then
      file = trim(path)//c_null_char
      how%path = c_loc(file)
    end if
    if (present(period_s)) how%period_s = period_s
    if (present(leave_by_returning)) how%leave_by_returning = merge(1, 0, leave_by_returning)
    result = c_start(this%handle, how)
    if (present(resumed)) resumed = result == 1
    if (result < 0 .and. .not. present(stat)) stop 1, quiet=.true.
    if (present(stat)) stat = min(result, 0)
  end subroutine

  ! A safe point. When asked to leave, it saves and ends the program with status 75; or, with
  ! leave_by_returning, leave is true, and the program must end with that status itself.
  subroutine make_point(this, leave)
    class(checkpoint), intent(inout) :: this
    logical, intent(out), optional :: leave
    integer(c_int) :: result
    result = c_point(this%handle)
    if (present(leave)) leave = result /= 0
  end subroutine

  ! done of total units of work; total 0: unknown.
  subroutine report_progress(this, done, total)
    class(checkpoint), intent(inout) :: this
    integer(int64), intent(in) :: done, total
    call c_progress(this%handle, done, total)
  end subroutine

  ! A line for `sublet show`, UTF-8; blanks at its end do not count.
  subroutine say_line(this, text)
    class(checkpoint), intent(inout) :: this
    character(*), intent(in) :: text
    call c_say(this%handle, trim(text)//c_null_char)
  end subroutine

  ! Saves now. stat 2: there is no place to save, neither a pool nor a path.
  subroutine save_now(this, stat)
    class(checkpoint), intent(inout) :: this
    integer, intent(out), optional :: stat
    call answer(c_save(this%handle), "save", stat)
  end subroutine

  ! The work is complete.
  subroutine finish_work(this)
    class(checkpoint), intent(inout) :: this
    call c_finish(this%handle)
  end subroutine

  subroutine close_handle(this)
    class(checkpoint), intent(inout) :: this
    call c_close(this%handle)
    this%handle = c_null_ptr
  end subroutine

end module
