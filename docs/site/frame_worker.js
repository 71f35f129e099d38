// A Worker for pages that are opened from a folder, where browsers refuse real ones: it runs its
// script in a hidden frame. Enough for the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      this.inside = this.frame.contentWindow;
      this.inside.postMessage = (data) => this.tell(new MessageEvent("message", { data }));
      const script = this.inside.document.createElement("script");
      script.src = url;
      script.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      };
      script.onerror = () => this.tell(new ErrorEvent("error"));
      this.inside.document.documentElement.append(script);
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }
    tell(event) {
      setTimeout(() => {
        this["on" + event.type]?.(event);
        this.dispatchEvent(event);
      });
    }
    terminate() {
      this.frame.remove();
    }
  };
}
