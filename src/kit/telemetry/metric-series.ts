/**
 * Caches the series of a metric by label values, because the lookups of prom-client are slow. The cache is unbounded,
 * so labels must have few values.
 */
export function seriesBy<Series>(open: (...labels: string[]) => Series): (...labels: string[]) => Series {
  const cache = new Map<string, Series>();
  return (...labels) => {
    const key = labels.join('\n');
    let series = cache.get(key);
    if (series === undefined) {
      series = open(...labels);
      cache.set(key, series);
    }
    return series;
  };
}
