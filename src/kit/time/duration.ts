export const seconds = (n: number): number => n * 1000;
export const minutes = (n: number): number => n * 60_000;
export const hours = (n: number): number => n * 3_600_000;
export const days = (n: number): number => n * 86_400_000;

/** Formats a duration for display: `850ms`, `1.3s`, `4m 10s`, `3h 2m`, `2d 4h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)}s`;
  const units: Array<[number, string]> = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
    [1000, 's'],
  ];
  const first = units.findIndex(([size]) => ms >= size);
  return units
    .slice(first, first + 2)
    .map(([size, name], index) => {
      const whole = index === 0 ? Math.floor(ms / size) : Math.floor((ms % units[first]![0]) / size);
      return whole === 0 && index > 0 ? '' : `${whole}${name}`;
    })
    .filter(Boolean)
    .join(' ');
}
