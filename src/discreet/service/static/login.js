// A login link carries a one-time code behind the #, which no server and no log sees. The person
// presses the button: a program that only opens links must not use the code up. A tab that already
// shows this page does not load it again for another link.
function follow() {
  const code = location.hash.slice(1);
  const field = document.getElementById("secret");
  if (!code || !field) return;
  history.replaceState(null, "", location.pathname + location.search);
  field.value = decodeURIComponent(code);
  document.getElementById("typed").hidden = true;
  document.getElementById("by-link").hidden = false;
  document.querySelector("#login button").focus();
}

addEventListener("hashchange", follow);
follow();
