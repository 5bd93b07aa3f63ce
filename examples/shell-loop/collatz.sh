#!/bin/sh
# usage: collatz.sh PART SIZE
# Of the numbers PART * SIZE + 1 to (PART + 1) * SIZE: how many steps their Collatz sequences
# take together to reach 1, and which takes the most. Saves its variables now and then and when
# it is asked to leave (SIGTERM), and goes on from there when it is started again.
n=$(($1 * $2 + 1)) last=$((($1 + 1) * $2))
sum=0 most=-1 most_at=0
file=collatz-$1-$2.checkpoint # without a pool

save() {
  sublet checkpoint save --path "$file" --program collatz \
    n="$n" sum="$sum" most="$most" most_at="$most_at"
}

leave=
trap leave=1 TERM
state=$(sublet checkpoint load --path "$file" --program collatz n sum most most_at)
case $? in
0) eval "$state" ;;
1) ;; # there is none: from the beginning
*) exit 1 ;;
esac

while [ "$n" -le "$last" ]; do
  x=$n steps=0
  while [ "$x" -ne 1 ]; do
    if [ $((x % 2)) -eq 0 ]; then x=$((x / 2)); else x=$((3 * x + 1)); fi
    steps=$((steps + 1))
  done
  sum=$((sum + steps))
  if [ "$steps" -gt "$most" ]; then most=$steps most_at=$n; fi
  n=$((n + 1))
  # Here the variables belong together, which the trap cannot know.
  if [ "$leave" ]; then
    save
    exit 75
  fi
  if [ $((n % 2000)) -eq 0 ]; then save; fi
done
echo "$sum steps; the longest sequence is that of $most_at with $most"
rm -f "$file" "$file.previous"
