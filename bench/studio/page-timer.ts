import type { Page } from 'playwright-core';

/** What is done in a page, and what it must show then. Both are expressions that the page evaluates. */
export interface Interaction {
  act: string;
  isDone: string;
}

/**
 * Returns the time from the start of an interaction until a frame with its result is painted, in ms. The page measures
 * it, so the connection to the browser adds nothing.
 */
export function timeOf(page: Page, { act, isDone }: Interaction): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve, reject) => {
    const rows = () => [...document.querySelectorAll('.row')];
    const list = () => document.querySelector('.virtual');
    const first = rows()[0]?.id;
    const startedAt = performance.now();
    ${act};
    const check = () => {
      if (${isDone}) requestAnimationFrame(() => resolve(performance.now() - startedAt));
      else if (performance.now() - startedAt > 30000) reject(new Error(${JSON.stringify(isDone)} + ' stayed false'));
      else requestAnimationFrame(check);
    };
    requestAnimationFrame(check);
  })`);
}

/** Runs before the scripts of a page. Stores the time from the start of the navigation until the first list is painted. */
export const NOTE_FIRST_LIST = `
  new MutationObserver((_changes, observer) => {
    if (!document.querySelector('.row')) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstListAt = performance.now(); }));
  }).observe(document, { childList: true, subtree: true });`;

/** Loads a screen and returns the time until its first list is painted, in ms. */
export async function timeToFirstList(page: Page, url: string): Promise<number> {
  await page.goto(url);
  return page.evaluate<number>(`new Promise((resolve) => {
    const check = () => (window.firstListAt === undefined ? setTimeout(check, 5) : resolve(window.firstListAt));
    check();
  })`);
}
