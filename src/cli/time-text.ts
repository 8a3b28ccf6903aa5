/** Formats epoch ms for people and scripts: `2026-11-21 08:15:00Z`; `-` for null. */
export function timeText(at: number | null): string {
  return at === null ? '-' : `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`;
}
