/** Formats epoch milliseconds as `2026-11-21 08:15:00Z`, and null as `-`. */
export function timeText(at: number | null): string {
  return at === null ? '-' : `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}
