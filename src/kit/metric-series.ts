/**
 * The series of a metric by its labels, found by one look-up: prom-client finds them by sorting and joining the names of a
 * label object at each call. Only for labels whose values are few.
 */
export function seriesBy<Series>(open: (...labels: string[]) => Series): (...labels: string[]) => Series {
  const known = new Map<string, Series>();
  return (...labels) => {
    const key = labels.join('\n');
    let series = known.get(key);
    if (series === undefined) {
      series = open(...labels);
      known.set(key, series);
    }
    return series;
  };
}
