import { CronPattern } from 'croner';

/** Days of each month in a leap year. */
const MONTH_LENGTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const SUNDAY = 0;
const SATURDAY = 6;
/**
 * Bit that croner sets for the last occurrence of a weekday in a month (`5L`). The lower bits stand for the first to
 * the fifth occurrence.
 */
const LAST_OF_MONTH = 32;

/**
 * A day of a month. `length` is the number of days in the month. `first` is the weekday of the first day (0 is Sunday).
 */
interface Day {
  day: number;
  length: number;
  first: number;
}

/**
 * Returns whether any date matches the cron line. For example, no date matches `0 0 30 2 *`. Throws croner's errors for
 * invalid lines. @spec docs/decisions/0177
 */
export function namesDay(cron: string): boolean {
  const pattern = new CronPattern(cron, undefined, { mode: '5-or-6-parts' });
  return MONTH_LENGTHS.some((longest, month) => {
    if (!pattern.month[month]) return false;
    const lengths = month === 1 ? [28, longest] : [longest];
    return lengths.some((length) => hasDay(pattern, length));
  });
}

function hasDay(pattern: CronPattern, length: number): boolean {
  for (let first = SUNDAY; first <= SATURDAY; first++)
    for (let day = 1; day <= length; day++) if (matches(pattern, { day, length, first })) return true;
  return false;
}

/**
 * Returns whether a date matches the day of the month or the weekday of the cron line. As in croner, both fields must
 * match if one field is `*` or the weekday begins with `+`.
 */
function matches(pattern: CronPattern, at: Day): boolean {
  const byDate = matchesDate(pattern, at);
  if (pattern.starDOW) return byDate;
  const byWeekday = matchesWeekday(pattern, at);
  return pattern.useAndLogic || pattern.starDOM ? byDate && byWeekday : byDate || byWeekday;
}

function matchesDate({ day: days, nearestWeekdays, lastWeekday, lastDayOfMonth }: CronPattern, at: Day) {
  const { day, length } = at;
  return (
    days[day - 1] === 1 ||
    nearestWeekdays.some((isSet, place) => isSet && nearestWeekday(place + 1, at) === day) ||
    (lastWeekday && day === lastWeekdayOf(at)) ||
    (lastDayOfMonth && day === length)
  );
}

function matchesWeekday({ dayOfWeek }: CronPattern, at: Day): boolean {
  const { day, length } = at;
  const allowed = dayOfWeek[weekdayOf(day, at)] ?? 0;
  const nth = 1 << Math.floor((day - 1) / 7);
  return (allowed & nth) !== 0 || ((allowed & LAST_OF_MONTH) !== 0 && day + 7 > length);
}

const weekdayOf = (day: number, { first }: Day): number => (first + day - 1) % 7;

function lastWeekdayOf(at: Day): number {
  const { length } = at;
  const weekday = weekdayOf(length, at);
  if (weekday === SUNDAY) return length - 2;
  return weekday === SATURDAY ? length - 1 : length;
}

/**
 * Returns the weekday (Monday to Friday) nearest to a day of the month. Returns undefined if the month lacks the day.
 */
function nearestWeekday(day: number, at: Day): number | undefined {
  const { length } = at;
  if (day > length) return undefined;
  const weekday = weekdayOf(day, at);
  if (weekday === SUNDAY) return day === length ? day - 2 : day + 1;
  if (weekday === SATURDAY) return day === 1 ? day + 2 : day - 1;
  return day;
}
